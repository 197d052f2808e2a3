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

/// What came of an attempt to apply a set.
struct Applied {
  enum class Kind : std::uint8_t {
    kDone,     ///< the container is where it should be, or can run nowhere any more
    kFailed,   ///< `error` says why; it is tried again
    kBlocked,  ///< others must leave first: nothing was tried, poke() says when to try again
    kUnseen,   ///< told to the runtime, but nobody can see yet whether it has come into effect
  };
  Kind kind = Kind::kDone;
  Error error = {};
};

struct QueueOptions {
  /// Brings the container to `target` and checks the effect; calls `done` once, later or at once, on the queues'
  /// thread.
  std::function<void(const std::string& container_id, const CpusetTarget& target, std::function<void(Applied)> done)>
      apply;
  /// Nothing is under way for the container, and what it should have is applied.
  std::function<void(const std::string& container_id, const CpusetTarget& applied)> converged;
  /// Runs something later, on the queues' thread.
  std::function<void(std::chrono::milliseconds delay, std::function<void()> then)> after;
  std::size_t max_in_flight = 16;  ///< applies under way over all queues
  std::uint32_t patience = 3;      ///< failures in a row after which those who wait are told
  std::chrono::milliseconds first_retry{100};
  std::chrono::milliseconds longest_retry{5000};
  std::chrono::milliseconds operation_timeout{20000};  ///< how long one may wait that needs more than its turn
};

/// The queues of all bound containers. One thread; every callback runs on it.
class ContainerQueues {
 public:
  using Converged = std::function<void(Status)>;
  /// Says that an operation is over. `invalidates`: what the runtime has now is not known to be what was applied.
  using OperationDone = std::function<void(bool invalidates)>;
  /// `status` is an error for an operation that needs more than its turn and did not get it in time, and NOT_FOUND for
  /// one whose container is no more.
  using Operation = std::function<void(const Status& status, OperationDone done)>;
  enum class Needs : std::uint8_t {
    kTurn,       ///< just its turn; until it is over nobody knows what the container has, unless it says set_applied()
    kTold,       ///< its turn, with the newest desired set told to the runtime, whether or not it can be seen
    kConverged,  ///< its turn, with the newest desired set applied
  };

  explicit ContainerQueues(QueueOptions options);

  /// Begins a queue. `applied`: what the container is known to have; none if that must be found out. What a queue of
  /// the same container had under way ends first, and leaves open what the container has.
  void open(const std::string& container_id, std::optional<CpusetTarget> applied, CpusetTarget desired);
  /// Ends a queue; whoever waits for it is told OK: the container is no more, so it runs on no CPU. Its operations run
  /// with NOT_FOUND.
  void close(const std::string& container_id);

  bool has(const std::string& container_id) const { return queues_.count(container_id) != 0; }
  /// What was under way for the container when its queue was closed is not over.
  bool is_ending(const std::string& container_id) const { return closing_.count(container_id) != 0; }
  /// Something is under way for the container.
  bool is_busy(const std::string& container_id) const;
  /// What is applied; none if unknown or no such queue.
  std::optional<CpusetTarget> applied(const std::string& container_id) const;

  void set_desired(const std::string& container_id, CpusetTarget desired);
  /// Somebody else's operation brought the container to `now`.
  void set_applied(const std::string& container_id, CpusetTarget now);
  /// What is applied is in doubt: the desired set is applied anew.
  void invalidate(const std::string& container_id);
  /// Who was blocked may try again.
  void poke(const std::string& container_id);

  /// Calls back once the queue is idle with its newest desired set applied: at once if it is. An error after `patience`
  /// failures in a row or after `timeout`. OK for a container without a queue.
  void when_converged(const std::string& container_id, std::chrono::milliseconds timeout, Converged converged);
  /// The same for all of several; the first error ends the wait.
  void when_all_converged(const std::vector<std::string>& container_ids, std::chrono::milliseconds timeout,
                          Converged converged);

  /// Runs somebody else's operation (a kubelet's update, a start) in its turn. False if there is no such queue.
  bool run(const std::string& container_id, Needs needs, Operation operation);

 private:
  struct Waiting {
    std::uint64_t number = 0;
    Needs needs = Needs::kTurn;
    Operation operation;
  };
  struct Waiter {
    std::uint64_t number = 0;
    Converged converged;
  };
  struct Queue {
    std::string container_id;
    std::optional<CpusetTarget> applied;
    std::optional<CpusetTarget> told;  ///< what the runtime has taken last
    /// What was applied before the operation that is under way, if that is true again when it is over.
    std::optional<CpusetTarget> before_operation;
    CpusetTarget desired;
    bool busy = false;
    bool closed = false;
    bool waits_for_former = false;  ///< what a queue of the same container had under way is not over; `busy` meanwhile
    bool resting = false;           ///< waits for its retry
    bool blocked = false;           ///< waits for poke()
    bool queued = false;            ///< waits for its turn among all queues
    std::uint32_t failures = 0;
    std::uint32_t unseen = 0;  ///< times in a row that nothing could be seen
    Error last_error;
    std::deque<Waiting> operations;
    std::vector<Waiter> waiters;
  };
  using QueuePtr = std::shared_ptr<Queue>;

  QueuePtr find(const std::string& container_id) const;
  static bool is_met(const Queue& queue, Needs needs);
  void pump(const QueuePtr& queue);
  void apply(const QueuePtr& queue);
  void finish_apply(const QueuePtr& queue, const CpusetTarget& target, const Applied& applied);
  void rest(const QueuePtr& queue);
  void operate(const QueuePtr& queue, const Status& status);
  void give_up_operation(const QueuePtr& queue, std::uint64_t number);
  static Error too_late(const Queue& queue);
  void give_up(const QueuePtr& queue, const Status& status);
  void start_queued();
  void over(const QueuePtr& queue);
  static void tell(const QueuePtr& queue, const Status& status);
  std::chrono::milliseconds retry_delay(std::uint32_t failures) const;

  QueueOptions options_;
  std::unordered_map<std::string, QueuePtr> queues_;
  std::unordered_map<std::string, QueuePtr> closing_;  ///< closed, with something under way
  std::deque<QueuePtr> turns_;
  std::size_t in_flight_ = 0;
  std::uint64_t next_waiter_ = 0;
  std::uint64_t last_operation_ = 0;
};

}  // namespace topolet::engine
