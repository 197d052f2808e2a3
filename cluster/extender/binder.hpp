// Binds pods to nodes, with the zones that they are promised written into the binding itself.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "cluster/api/api.hpp"
#include "cluster/api/trouble_log.hpp"
#include "cluster/extender/shared_book.hpp"
#include "cluster/extender/wire.hpp"
#include "core/base/log.hpp"

namespace topolet::extender {

/// On the loop's thread.
class Binder {
 public:
  struct Options {
    ZoneDefaults defaults;
    std::chrono::milliseconds bind_timeout{4000};
    std::chrono::milliseconds patience{4700};  ///< for all of a bind: below the scheduler's, which is 5 s by default
    std::chrono::milliseconds look_after_every{5000};  ///< at promises that were not kept
    std::chrono::milliseconds retry{1000};
    /// Binds that the API server is busy with. Others wait for their turn: where it is slow, more at once would make it
    /// slower still, also for the Lease.
    std::size_t most_underway = 32;
    /// The longest that a scheduler is held up for them, so that it chooses no nodes faster than pods can be bound.
    std::chrono::milliseconds longest_hold{1000};
    /// A bind that has less left is not begun.
    std::chrono::milliseconds least_time{1000};
  };
  /// `time_to_bind`: asked right before each request that binds, how long it may take; 0: it may not be sent.
  Binder(api::Api& api, SharedBook& shared, RecentDemands& recent, Options options,
         std::function<std::chrono::milliseconds()> time_to_bind, Log& log);
  ~Binder() { *is_alive_ = false; }
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  /// This replica binds from now on: reads what others have bound. Binds that come meanwhile wait.
  void begin();
  void end();

  /// Null: it is bound. Else one line for the scheduler, which shows it to whoever made the pod.
  using OnBound = std::function<void(const std::string& error)>;
  void bind(BindingArgs args, OnBound on_bound);

  /// Some bind was begun and is not answered, or may still be carried out.
  bool has_binds_underway() const { return underway_ > 0 || api_.now() < unsure_until_; }
  /// Calls `go_on` when no binds wait for their turn, or when that has taken long enough.
  void when_none_waits(std::function<void()> go_on);

 private:
  struct Call;
  using Shared = std::shared_ptr<Call>;

  void list_pending(const std::string& continue_token);
  /// And then goes on with the call.
  void list_pods_of_node(const Shared& call, bool from_memory);
  /// Remembers what is bound, and then calls `then` with the answer or the error.
  void list_pods(const std::string& query, std::chrono::milliseconds timeout,
                 std::function<void(const api::ApiAnswer& answer)> then);
  void remember(const nlohmann::json& pod);

  void begin_waiting();
  void note_waiting();
  void bind_known(const Shared& call);
  bool is_synced() const;
  void reserve(const Shared& call);
  void send(const Shared& call);
  void take_answer(const Shared& call, const api::ApiAnswer& answer);
  void find_out(const Shared& call, const std::string& why);
  void take_pod(const Shared& call, const api::ApiAnswer& answer, const std::string& why);
  void finish_bound(const Shared& call, const nlohmann::json& pod);
  /// Gives back what was promised, unless the pod may be bound all the same.
  void finish(const Shared& call, const std::string& error);

  void get_pod(const std::string& name_space, const std::string& name, api::Api::OnAnswer on_answer);
  void look_after_promises();
  void look_after(const Promise& promise);

  api::Api& api_;
  SharedBook& shared_;
  RecentDemands& recent_;
  const Options options_;
  const std::function<std::chrono::milliseconds()> time_to_bind_;
  api::TroubleLog trouble_;
  bool is_binding_ = false;  ///< from begin() to end()
  bool has_begun_ = false;   ///< what others have bound was read
  std::uint64_t term_ = 0;
  std::deque<Shared> waiting_;  ///< the oldest first
  bool is_beginning_ = false;   ///< those that wait
  std::size_t underway_ = 0;
  api::Api::Clock::time_point unsure_until_{};
  std::deque<std::shared_ptr<std::function<void()>>> held_;  ///< until none waits
  std::string pods_version_;                                 ///< of the API server when this term began
  std::set<std::string> looked_at_;                          ///< nodes whose pods were read in this term
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace topolet::extender
