// One of several replicas leads: who holds a Lease.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cluster/api/api.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"

namespace topolet::api {

/// On the loop's thread. Whoever leads stops at a deadline of its own monotonic clock, before any other may begin: the
/// others take the Lease only when it has not changed for its whole duration, by their own clocks. Times in the Lease
/// are for people.
class LeaderElection {
 public:
  using Clock = Api::Clock;

  struct Options {
    std::string name_space;
    std::string name;
    std::string identity;
    std::string address;  ///< where the holder is reached by the others
    std::chrono::milliseconds duration{6000};
    /// The time after which a holder that has not renewed does not lead any more.
    std::chrono::milliseconds renew_deadline{4000};
    std::chrono::milliseconds retry_period{1000};
  };
  struct Handlers {
    std::function<void()> on_begin;
    std::function<void()> on_end;
  };
  struct Leader {
    std::string identity;
    std::string address;
  };

  LeaderElection(Api& api, Options options, Handlers handlers, Log& log);
  ~LeaderElection() { *is_alive_ = false; }
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  void start() { look(); }
  /// Stops leading for ever.
  void stand_down();
  /// Stops leading and releases the lease, so that others need not wait: only if nothing is underway any more that only
  /// a leader may do. Calls `then` when that is done, or cannot be.
  void give_up(std::function<void()> then);

  /// Also true only until the deadline, whatever timers are late.
  bool is_leader() const { return is_leading_ && api_.now() < deadline_; }
  /// How long something may take that only a leader may do, so that it is over before another one leads; 0: nothing may
  /// be begun any more.
  std::chrono::milliseconds time_left() const;
  /// Another one that holds the Lease, as far as is known.
  std::optional<Leader> other_leader() const;

 private:
  void look();
  void take_lease(const ApiAnswer& answer, Clock::time_point asked);
  void write(nlohmann::json lease, bool is_new, Clock::time_point asked);
  nlohmann::json lease_of_ours(const nlohmann::json& current) const;
  void note_holder(const nlohmann::json& lease, Clock::time_point now);
  void lead_until(Clock::time_point deadline);
  void stop_leading(const char* why);
  void look_again();
  void watch_deadline();
  std::string path() const;

  Api& api_;
  const Options options_;
  const Handlers handlers_;
  Log& log_;
  TroubleLog trouble_;
  bool is_leading_ = false;
  bool has_given_up_ = false;
  bool holds_lease_ = false;  ///< when it stood down
  Clock::time_point deadline_{};
  nlohmann::json lease_;  ///< as we wrote it
  // The other holder, as it was seen last.
  Leader holder_;
  std::string holder_mark_;  ///< changes whenever it renews
  std::chrono::milliseconds holder_duration_{0};
  Clock::time_point holder_seen_{};
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace topolet::api
