#include "core/engine/converge/container_queues.hpp"

#include <algorithm>
#include <utility>

namespace topolet::engine {
namespace {

/// The number of failures in a row before waiting operations are told.
constexpr std::uint32_t kFailuresToReport = 3;
constexpr std::chrono::milliseconds kFirstRetry{100};
constexpr std::chrono::milliseconds kLongestRetry{5000};
/// The time that an operation may wait if it needs more than its turn.
constexpr std::chrono::seconds kOperationTimeout{20};

std::chrono::milliseconds retry_delay(std::uint32_t failures) {
  const auto doubled = kFirstRetry * (1 << std::min(failures, 10U));
  return std::min<std::chrono::milliseconds>(doubled, kLongestRetry);
}

/// Among operations or waiters.
template <class Entries>
auto find_number(Entries& entries, std::uint64_t number) {
  return std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.number == number; });
}

template <class Entries>
bool has_number(const Entries& entries, std::uint64_t number) {
  return find_number(entries, number) != entries.end();
}

}  // namespace

ContainerQueues::ContainerQueues(QueueOptions options) : options_(std::move(options)) {}

ContainerQueues::QueuePtr ContainerQueues::find(const std::string& container_id) const {
  const auto found = queues_.find(container_id);
  return found == queues_.end() ? nullptr : found->second;
}

void ContainerQueues::open(const std::string& container_id, std::optional<ContainerCpuset> applied,
                           ContainerCpuset desired) {
  close(container_id);
  auto queue = std::make_shared<Queue>();
  queue->container_id = container_id;
  queue->applied = std::move(applied);
  queue->desired = std::move(desired);
  queue->waits_for_predecessor = queue->busy = is_closing(container_id);
  if (queue->waits_for_predecessor) queue->applied.reset();
  queues_[container_id] = queue;
  advance(queue);
}

void ContainerQueues::close(const std::string& container_id) {
  const QueuePtr queue = find(container_id);
  if (!queue) return;
  queue->closed = true;
  queues_.erase(container_id);
  if (queue->busy && !queue->waits_for_predecessor) closing_[container_id] = queue;
  answer_waiters(queue, {});
  std::deque<QueuedOperation> operations;
  operations.swap(queue->operations);
  const Error gone{Code::kNotFound, "container " + container_id + " no longer exists"};
  for (const QueuedOperation& entry : operations) entry.operation(gone, [](bool) {});
}

std::optional<ContainerCpuset> ContainerQueues::applied(const std::string& container_id) const {
  const QueuePtr queue = find(container_id);
  return queue ? queue->applied : std::nullopt;
}

bool ContainerQueues::is_busy(const std::string& container_id) const {
  const QueuePtr queue = find(container_id);
  return queue && (queue->busy || !queue->operations.empty());
}

void ContainerQueues::set_desired(const std::string& container_id, ContainerCpuset desired) {
  const QueuePtr queue = find(container_id);
  if (!queue || queue->desired == desired) return;
  queue->desired = std::move(desired);
  queue->failures = 0;
  queue->blocked = false;
  queue->retry_scheduled = false;  // what failed was another set
  advance(queue);
}

void ContainerQueues::set_applied(const std::string& container_id, ContainerCpuset now) {
  if (const QueuePtr queue = find(container_id); queue) queue->applied = std::move(now);
}

void ContainerQueues::invalidate(const std::string& container_id) {
  const QueuePtr queue = find(container_id);
  if (!queue) return;
  queue->applied.reset();
  queue->sent.reset();
  queue->before_operation.reset();
  advance(queue);
}

void ContainerQueues::unblock(const std::string& container_id) {
  const QueuePtr queue = find(container_id);
  if (!queue || !std::exchange(queue->blocked, false)) return;
  advance(queue);
}

void ContainerQueues::when_converged(const std::string& container_id, std::chrono::milliseconds timeout,
                                     ConvergedCallback converged) {
  const QueuePtr queue = find(container_id);
  if (!queue) {
    converged({});
    return;
  }
  const std::uint64_t number = ++next_waiter_;
  queue->waiters.push_back({number, std::move(converged)});
  advance(queue);
  // A timer takes memory until it runs, so there is none for what is over already.
  if (!has_number(queue->waiters, number)) return;
  options_.after(timeout, [weak = std::weak_ptr<Queue>(queue), number] {
    if (const QueuePtr waited = weak.lock()) give_up_waiter(*waited, number);
  });
}

void ContainerQueues::give_up_waiter(Queue& queue, std::uint64_t number) {
  auto& waiters = queue.waiters;
  const auto late = find_number(waiters, number);
  if (late == waiters.end()) return;
  const ConvergedCallback callback = std::move(late->converged);
  waiters.erase(late);
  callback(timeout_error(queue));
}

Error ContainerQueues::timeout_error(const Queue& queue) {
  const std::string& why = queue.last_error.message;
  return {Code::kUnavailable, "the CPUs of container " + queue.container_id +
                                  " could not be set in time: " + (why.empty() ? "the runtime has not answered" : why)};
}

void ContainerQueues::when_all_converged(const std::vector<std::string>& container_ids,
                                         std::chrono::milliseconds timeout, ConvergedCallback converged) {
  if (container_ids.empty()) {
    converged({});
    return;
  }
  struct Join {
    std::size_t missing;
    ConvergedCallback converged;
  };
  auto join = std::make_shared<Join>(Join{container_ids.size(), std::move(converged)});
  for (const std::string& container_id : container_ids) {
    when_converged(container_id, timeout, [join](const Status& status) {
      if (!join->converged) return;
      if (!status || --join->missing == 0) std::exchange(join->converged, nullptr)(status);
    });
  }
}

bool ContainerQueues::run(const std::string& container_id, Needs needs, Operation operation) {
  const QueuePtr queue = find(container_id);
  if (!queue) return false;
  const std::uint64_t number = ++last_operation_;
  queue->operations.push_back({number, needs, std::move(operation)});
  advance(queue);
  if (needs != Needs::kTurn && has_number(queue->operations, number)) {
    options_.after(kOperationTimeout, [this, weak = std::weak_ptr<Queue>(queue), number] {
      if (const QueuePtr waited = weak.lock()) give_up_operation(waited, number);
    });
  }
  return true;
}

void ContainerQueues::give_up_operation(const QueuePtr& queue, std::uint64_t number) {
  auto& operations = queue->operations;
  const auto late = find_number(operations, number);
  if (late == operations.end()) return;
  const Operation operation = std::move(late->operation);
  operations.erase(late);
  operation(timeout_error(*queue), [](bool) {});
  advance(queue);
}

/// Returns true if that is the set that the container should have. CPUs of it that were given away meanwhile are taken
/// from the container once that is durable; a container that has left those already need not be told now.
bool ContainerQueues::is_desired(const Queue& queue, const std::optional<ContainerCpuset>& set) const {
  return set && (*set == queue.desired || set == options_.sendable(queue.container_id, queue.desired));
}

bool ContainerQueues::is_ready_for(const Queue& queue, Needs needs) const {
  switch (needs) {
    case Needs::kTurn:
      return true;
    case Needs::kSent:
      return is_desired(queue, queue.applied) || is_desired(queue, queue.sent);
    case Needs::kConverged:
      return is_desired(queue, queue.applied);
  }
  return false;
}

void ContainerQueues::advance(const QueuePtr& queue) {
  if (queue->busy || queue->closed) return;
  const bool converged = is_desired(*queue, queue->applied);
  if (!queue->operations.empty() && is_ready_for(*queue, queue->operations.front().needs)) {
    run_operation(queue, {});
  } else if (converged) {
    options_.converged(queue->container_id, *queue->applied);
    answer_waiters(queue, {});
  } else if (!queue->retry_scheduled && !queue->blocked && !queue->queued) {
    queue->queued = true;
    run_queue_.push_back(queue);
    start_queued();
  }
}

void ContainerQueues::start_queued() {
  while (in_flight_ < options_.max_in_flight && !run_queue_.empty()) {
    const QueuePtr queue = run_queue_.front();
    run_queue_.pop_front();
    queue->queued = false;
    if (queue->busy || queue->closed) continue;
    if (is_desired(*queue, queue->applied)) {
      advance(queue);
    } else {
      apply(queue);
    }
  }
}

void ContainerQueues::apply(const QueuePtr& queue) {
  const std::optional<ContainerCpuset> agreed = options_.sendable(queue->container_id, queue->desired);
  if (!agreed) return;
  const ContainerCpuset target = *agreed;
  queue->busy = true;
  ++in_flight_;
  // Until the runtime has answered, the container may have either set.
  queue->applied.reset();
  queue->sent.reset();
  options_.apply(queue->container_id, target,
                 [this, queue, target](const ApplyResult& applied) { finish_apply(queue, target, applied); });
}

/// Ends the work that was under way; a queue that took the place of this one begins.
void ContainerQueues::finish_work(const QueuePtr& queue) {
  queue->busy = false;
  const auto predecessor = closing_.find(queue->container_id);
  if (predecessor == closing_.end() || predecessor->second != queue) return;
  closing_.erase(predecessor);
  const QueuePtr next = find(queue->container_id);
  if (!next) return options_.ended(queue->container_id);
  if (!std::exchange(next->waits_for_predecessor, false)) return;
  next->busy = false;
  advance(next);
}

void ContainerQueues::finish_apply(const QueuePtr& queue, const ContainerCpuset& target, const ApplyResult& applied) {
  finish_work(queue);
  --in_flight_;
  switch (applied.kind) {
    case ApplyResult::Kind::kDone:
      queue->applied = queue->sent = target;
      queue->failures = queue->unverified = 0;
      queue->last_error = {};
      break;
    case ApplyResult::Kind::kBlocked:
      queue->blocked = true;
      queue->last_error = applied.error;
      break;
    case ApplyResult::Kind::kUnverified:
      queue->sent = target;
      queue->last_error = applied.error;
      ++queue->unverified;
      schedule_retry(queue, applied.retry_after.value_or(usual_delay(*queue)));
      break;
    case ApplyResult::Kind::kPostponed:
      queue->last_error = applied.error;
      schedule_retry(queue, applied.retry_after.value_or(usual_delay(*queue)));
      break;
    case ApplyResult::Kind::kFailed:
      if (queue->closed) break;
      queue->last_error = applied.error;
      schedule_retry(queue, applied.retry_after.value_or(usual_delay(*queue)));
      if (++queue->failures >= kFailuresToReport || applied.retry_after) give_up(queue, applied.error);
      break;
  }
  advance(queue);
  start_queued();
}

std::chrono::milliseconds ContainerQueues::usual_delay(const Queue& queue) {
  return retry_delay(queue.failures + queue.unverified);
}

void ContainerQueues::schedule_retry(const QueuePtr& queue, std::chrono::milliseconds delay) {
  queue->retry_scheduled = true;
  options_.after(delay, [this, queue, retry = ++queue->retry] {
    if (queue->retry != retry || !queue->retry_scheduled) return;
    queue->retry_scheduled = false;
    advance(queue);
  });
}

void ContainerQueues::give_up(const QueuePtr& queue, const Status& status) {
  answer_waiters(queue, status);
  while (!queue->busy && !queue->closed && !queue->operations.empty() &&
         queue->operations.front().needs != Needs::kTurn) {
    run_operation(queue, status);
  }
}

void ContainerQueues::run_operation(const QueuePtr& queue, const Status& status) {
  queue->busy = true;
  const QueuedOperation entry = std::move(queue->operations.front());
  queue->operations.pop_front();
  // While an operation runs that may change the cpuset, it is unknown which one the container has.
  if (entry.needs == Needs::kTurn) {
    queue->before_operation = std::exchange(queue->applied, std::nullopt);
    queue->sent.reset();
  }
  entry.operation(status, [this, queue](bool invalidates) {
    finish_work(queue);
    const auto before = std::exchange(queue->before_operation, std::nullopt);
    if (invalidates) {
      queue->applied.reset();
    } else if (!queue->applied) {
      queue->applied = before;
    }
    advance(queue);
  });
}

void ContainerQueues::answer_waiters(const QueuePtr& queue, const Status& status) {
  std::vector<Waiter> waiters;
  waiters.swap(queue->waiters);
  for (const Waiter& waiter : waiters) waiter.converged(status);
}

}  // namespace topolet::engine
