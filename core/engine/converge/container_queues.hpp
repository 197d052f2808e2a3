// One queue per container: what is done to a container's resources is done one at a time, and the newest desired set
// wins.
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
#include "core/engine/state/events.hpp"

namespace topolet::engine {

/// The result of an attempt to apply a set.
struct ApplyResult {
  enum class Kind : std::uint8_t {
    kDone,        ///< the container is where it should be, or can run nowhere any more
    kFailed,      ///< `error` says why; it is tried again
    kBlocked,     ///< others must leave first: nothing was tried, unblock() says when to try again
    kUnverified,  ///< told to the runtime, but nobody can see yet whether it has come into effect
    kPostponed,   ///< it is too early to tell the runtime again: nothing was tried, `retry_after` says when
  };
  Kind kind = Kind::kDone;
  Error error = {};
  /// For all but kDone and kBlocked: not to be tried again before that, and an operation that waits for a failed one
  /// need not wait for more. None: soon.
  std::optional<std::chrono::milliseconds> retry_after = {};
};

struct QueueOptions {
  /// Brings the container to `target` and checks the effect; calls `done` once, later or at once, on the queues'
  /// thread.
  std::function<void(const std::string& container_id, const ContainerCpuset& target,
                     std::function<void(ApplyResult)> done)>
      apply;
  /// Returns what of `desired` the container may be told now: some of it may have been given away since. None: nothing;
  /// then set_desired() follows.
  std::function<std::optional<ContainerCpuset>(const std::string& container_id, const ContainerCpuset& desired)>
      sendable;
  /// Nothing is under way for the container, and what it should have is applied, as far as it may have it.
  std::function<void(const std::string& container_id, const ContainerCpuset& applied)> converged;
  /// The work of a closed queue is over, and no other queue of the container has taken its place.
  std::function<void(const std::string& container_id)> ended;
  /// Runs something later, on the queues' thread.
  std::function<void(std::chrono::milliseconds delay, std::function<void()> then)> after;
  std::size_t max_in_flight = 16;  ///< applies under way over all queues
};

/// The queues of all bound containers. One thread; every callback runs on it.
class ContainerQueues {
 public:
  using ConvergedCallback = std::function<void(Status)>;
  /// Reports the end of an operation. `invalidates`: the runtime may now have another cpuset than the applied one.
  using OperationDone = std::function<void(bool invalidates)>;
  /// `status` is an error for an operation that needs more than its turn and did not get it in time, and NOT_FOUND for
  /// one whose container is no more.
  using Operation = std::function<void(const Status& status, OperationDone done)>;
  enum class Needs : std::uint8_t {
    kTurn,       ///< only its turn; until it ends the cpuset counts as unknown, unless it calls set_applied()
    kSent,       ///< its turn, after the newest desired set was sent to the runtime, whether or not it has taken effect
    kConverged,  ///< its turn, with the newest desired set applied; for both, what of it is sendable is enough
  };

  explicit ContainerQueues(QueueOptions options);

  /// Opens a queue. `applied`: the known cpuset of the container; none if it must be found out. An operation that an
  /// earlier queue of the container has started ends first, and leaves the cpuset unknown.
  void open(const std::string& container_id, std::optional<ContainerCpuset> applied, ContainerCpuset desired);
  /// Ends a queue; an operation that waits for it is told OK: the container is no more, so it runs on no CPU. Its
  /// operations run with NOT_FOUND.
  void close(const std::string& container_id);

  bool has(const std::string& container_id) const { return queues_.count(container_id) != 0; }
  /// An operation that was running when the container's queue was closed has not ended.
  bool is_closing(const std::string& container_id) const { return closing_.count(container_id) != 0; }
  /// Something is under way for the container.
  bool is_busy(const std::string& container_id) const;
  /// Returns the applied set; none if unknown or no such queue.
  std::optional<ContainerCpuset> applied(const std::string& container_id) const;

  void set_desired(const std::string& container_id, ContainerCpuset desired);
  /// Somebody else's operation brought the container to `now`.
  void set_applied(const std::string& container_id, ContainerCpuset now);
  /// Marks the applied set as doubtful: the desired set is applied anew.
  void invalidate(const std::string& container_id);
  /// Lets a blocked container try again.
  void unblock(const std::string& container_id);

  /// Calls back once the queue is idle with its newest desired set applied, or what of that is sendable: at once if it
  /// is. An error after a few failures in a row or after `timeout`. OK for a container without a queue.
  void when_converged(const std::string& container_id, std::chrono::milliseconds timeout, ConvergedCallback converged);
  /// The same for all of several; the first error ends the wait.
  void when_all_converged(const std::vector<std::string>& container_ids, std::chrono::milliseconds timeout,
                          ConvergedCallback converged);

  /// Runs somebody else's operation (a kubelet's update, a start) in its turn. Returns false if there is no such queue.
  bool run(const std::string& container_id, Needs needs, Operation operation);

 private:
  struct QueuedOperation {
    std::uint64_t number = 0;
    Needs needs = Needs::kTurn;
    Operation operation;
  };
  struct Waiter {
    std::uint64_t number = 0;
    ConvergedCallback converged;
  };
  struct Queue {
    std::string container_id;
    std::optional<ContainerCpuset> applied;
    std::optional<ContainerCpuset> sent;  ///< what the runtime has taken last
    /// The set that was applied before the operation that is under way, if that is true again when it is over.
    std::optional<ContainerCpuset> before_operation;
    ContainerCpuset desired;  ///< as is durable
    bool busy = false;
    bool closed = false;
    bool waits_for_predecessor =
        false;                     ///< what a queue of the same container had under way is not over; `busy` meanwhile
    bool retry_scheduled = false;  ///< waits for its retry
    std::uint64_t retry = 0;       ///< which retry it waits for; an older one is not waited for any more
    bool blocked = false;          ///< waits for unblock()
    bool queued = false;           ///< waits for its turn among all queues
    std::uint32_t failures = 0;
    std::uint32_t unverified = 0;  ///< times in a row that nothing could be seen
    Error last_error;
    std::deque<QueuedOperation> operations;
    std::vector<Waiter> waiters;
  };
  using QueuePtr = std::shared_ptr<Queue>;

  QueuePtr find(const std::string& container_id) const;
  bool is_desired(const Queue& queue, const std::optional<ContainerCpuset>& set) const;
  bool is_ready_for(const Queue& queue, Needs needs) const;
  void advance(const QueuePtr& queue);
  void apply(const QueuePtr& queue);
  void finish_apply(const QueuePtr& queue, const ContainerCpuset& target, const ApplyResult& applied);
  void schedule_retry(const QueuePtr& queue, std::chrono::milliseconds delay);
  static std::chrono::milliseconds usual_delay(const Queue& queue);
  void run_operation(const QueuePtr& queue, const Status& status);
  static void give_up_waiter(Queue& queue, std::uint64_t number);
  void give_up_operation(const QueuePtr& queue, std::uint64_t number);
  static Error timeout_error(const Queue& queue);
  void give_up(const QueuePtr& queue, const Status& status);
  void start_queued();
  void finish_work(const QueuePtr& queue);
  static void answer_waiters(const QueuePtr& queue, const Status& status);

  QueueOptions options_;
  std::unordered_map<std::string, QueuePtr> queues_;
  std::unordered_map<std::string, QueuePtr> closing_;  ///< closed, with something under way
  std::deque<QueuePtr> run_queue_;
  std::size_t in_flight_ = 0;
  std::uint64_t next_waiter_ = 0;
  std::uint64_t last_operation_ = 0;
};

}  // namespace topolet::engine
