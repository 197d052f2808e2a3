// One lane per container: what is done to a container's resources is done one at a time, and the newest target wins.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet {

/// What a container's cpuset is to be.
struct CpusetTarget {
  CpuSet cpus;
  NodeSet mems;  ///< empty = leave them alone

  friend bool operator==(const CpusetTarget&, const CpusetTarget&) = default;
};

struct LaneOptions {
  /// Tells the runtime and checks the effect; calls `done` once, later or at once, on the lanes' thread.
  std::function<void(const std::string& container_id, const CpusetTarget& target, std::function<void(Status)> done)>
      apply;
  /// Runs something later, on the lanes' thread.
  std::function<void(std::chrono::milliseconds delay, std::function<void()> then)> after;
  std::size_t max_in_flight = 16;  ///< applies under way over all lanes
  std::uint32_t patience = 3;      ///< failures in a row after which those who wait are told
  std::chrono::milliseconds first_retry{100};
  std::chrono::milliseconds longest_retry{5000};
};

/// The lanes of all bound containers. One thread; every callback runs on it.
class Lanes {
 public:
  using Settled = std::function<void(Status)>;
  /// Says that an operation is over. `disturbed`: what the runtime has now is not known to be what was confirmed.
  using OperationDone = std::function<void(bool disturbed)>;
  /// `status` is an error only for an operation that needs a settled lane and could not have one.
  using Operation = std::function<void(const Status& status, OperationDone done)>;
  enum class Needs : std::uint8_t {
    kTurn,     ///< just its turn; until it is over nobody knows what the container has, unless it says confirm()
    kSettled,  ///< its turn, with the newest target confirmed
  };

  explicit Lanes(LaneOptions options);

  /// Begins a lane. `confirmed`: what the container is known to have; none if that must be found out.
  void open(const std::string& container_id, std::optional<CpusetTarget> confirmed, CpusetTarget target);
  /// Ends a lane; whoever waits for it is told OK: the container is no more, so it runs on no CPU.
  void close(const std::string& container_id);

  bool has(const std::string& container_id) const { return lanes_.count(container_id) != 0; }
  /// What is confirmed; none if unknown or no such lane.
  std::optional<CpusetTarget> confirmed(const std::string& container_id) const;

  void set_target(const std::string& container_id, CpusetTarget target);
  /// Somebody else's operation brought the container to `now`.
  void confirm(const std::string& container_id, CpusetTarget now);
  /// The confirmed state is in doubt: the target is applied anew.
  void disturb(const std::string& container_id);

  /// Calls back once the lane is idle with its newest target confirmed: at once if it is. An error after `patience`
  /// failures in a row or after `timeout`. OK for a container without a lane.
  void when_settled(const std::string& container_id, std::chrono::milliseconds timeout, Settled settled);
  /// The same for all of several; the first error ends the wait.
  void when_all_settled(const std::vector<std::string>& container_ids, std::chrono::milliseconds timeout,
                        Settled settled);

  /// Runs somebody else's operation (a kubelet's update, a start) in its turn. Dropped if the lane is closed before.
  /// False if there is no such lane.
  bool run(const std::string& container_id, Needs needs, Operation operation);

 private:
  struct Waiting {
    Needs needs = Needs::kTurn;
    Operation operation;
  };
  struct Waiter {
    std::uint64_t number = 0;
    Settled settled;
  };
  struct Lane {
    std::string container_id;
    std::optional<CpusetTarget> confirmed;
    CpusetTarget target;
    bool busy = false;
    bool closed = false;
    bool resting = false;  ///< waits for its retry
    bool queued = false;   ///< waits for its turn among all lanes
    std::uint32_t failures = 0;
    Error last_error;
    std::deque<Waiting> operations;
    std::vector<Waiter> waiters;
  };
  using LanePtr = std::shared_ptr<Lane>;

  LanePtr find(const std::string& container_id) const;
  void pump(const LanePtr& lane);
  void apply(const LanePtr& lane);
  void applied(const LanePtr& lane, const CpusetTarget& target, const Status& status);
  void rest(const LanePtr& lane);
  void operate(const LanePtr& lane, const Status& status);
  void give_up(const LanePtr& lane, const Status& status);
  void start_queued();
  static void tell(const LanePtr& lane, const Status& status);
  std::chrono::milliseconds retry_delay(std::uint32_t failures) const;

  LaneOptions options_;
  std::unordered_map<std::string, LanePtr> lanes_;
  std::deque<LanePtr> queue_;
  std::size_t in_flight_ = 0;
  std::uint64_t next_waiter_ = 0;
};

}  // namespace topolet
