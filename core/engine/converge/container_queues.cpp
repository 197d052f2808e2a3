#include "core/engine/converge/container_queues.hpp"

#include <algorithm>
#include <utility>

namespace topolet::engine {

ContainerQueues::ContainerQueues(QueueOptions options) : options_(std::move(options)) {}

ContainerQueues::QueuePtr ContainerQueues::find(const std::string& container_id) const {
  const auto found = queues_.find(container_id);
  return found == queues_.end() ? nullptr : found->second;
}

void ContainerQueues::open(const std::string& container_id, std::optional<CpusetTarget> applied, CpusetTarget desired) {
  close(container_id);
  auto queue = std::make_shared<Queue>();
  queue->container_id = container_id;
  queue->applied = std::move(applied);
  queue->desired = std::move(desired);
  queue->waits_for_former = queue->busy = is_ending(container_id);
  if (queue->waits_for_former) queue->applied.reset();
  queues_[container_id] = queue;
  pump(queue);
}

void ContainerQueues::close(const std::string& container_id) {
  const QueuePtr queue = find(container_id);
  if (!queue) return;
  queue->closed = true;
  queues_.erase(container_id);
  if (queue->busy && !queue->waits_for_former) closing_[container_id] = queue;
  tell(queue, {});
  std::deque<Waiting> operations;
  operations.swap(queue->operations);
  const Error gone{Code::kNotFound, "container " + container_id + " is no more"};
  for (const Waiting& waiting : operations) waiting.operation(gone, [](bool) {});
}

std::optional<CpusetTarget> ContainerQueues::applied(const std::string& container_id) const {
  const QueuePtr queue = find(container_id);
  return queue ? queue->applied : std::nullopt;
}

bool ContainerQueues::is_busy(const std::string& container_id) const {
  const QueuePtr queue = find(container_id);
  return queue && (queue->busy || !queue->operations.empty());
}

void ContainerQueues::set_desired(const std::string& container_id, CpusetTarget desired) {
  const QueuePtr queue = find(container_id);
  if (!queue || queue->desired == desired) return;
  queue->desired = std::move(desired);
  queue->failures = 0;
  queue->blocked = false;
  pump(queue);
}

void ContainerQueues::set_applied(const std::string& container_id, CpusetTarget now) {
  if (const QueuePtr queue = find(container_id); queue) queue->applied = std::move(now);
}

void ContainerQueues::invalidate(const std::string& container_id) {
  const QueuePtr queue = find(container_id);
  if (!queue) return;
  queue->applied.reset();
  queue->told.reset();
  queue->before_operation.reset();
  pump(queue);
}

void ContainerQueues::poke(const std::string& container_id) {
  const QueuePtr queue = find(container_id);
  if (!queue || !std::exchange(queue->blocked, false)) return;
  pump(queue);
}

void ContainerQueues::when_converged(const std::string& container_id, std::chrono::milliseconds timeout,
                                     Converged converged) {
  const QueuePtr queue = find(container_id);
  if (!queue) {
    converged({});
    return;
  }
  const std::uint64_t number = ++next_waiter_;
  queue->waiters.push_back({number, std::move(converged)});
  options_.after(timeout, [weak = std::weak_ptr<Queue>(queue), number] {
    const QueuePtr waited = weak.lock();
    if (!waited) return;
    auto& waiters = waited->waiters;
    const auto late = std::find_if(waiters.begin(), waiters.end(), [&](const Waiter& w) { return w.number == number; });
    if (late == waiters.end()) return;
    const Converged callback = std::move(late->converged);
    waiters.erase(late);
    callback(too_late(*waited));
  });
  pump(queue);
}

Error ContainerQueues::too_late(const Queue& queue) {
  const std::string& why = queue.last_error.message;
  return {Code::kUnavailable, "the CPUs of container " + queue.container_id +
                                  " could not be set in time: " + (why.empty() ? "the runtime has not answered" : why)};
}

void ContainerQueues::when_all_converged(const std::vector<std::string>& container_ids,
                                         std::chrono::milliseconds timeout, Converged converged) {
  if (container_ids.empty()) {
    converged({});
    return;
  }
  struct Join {
    std::size_t missing;
    Converged converged;
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
  if (needs != Needs::kTurn) {
    options_.after(options_.operation_timeout, [this, weak = std::weak_ptr<Queue>(queue), number] {
      if (const QueuePtr waited = weak.lock()) give_up_operation(waited, number);
    });
  }
  pump(queue);
  return true;
}

void ContainerQueues::give_up_operation(const QueuePtr& queue, std::uint64_t number) {
  auto& operations = queue->operations;
  const auto late = std::find_if(operations.begin(), operations.end(),
                                 [&](const Waiting& waiting) { return waiting.number == number; });
  if (late == operations.end()) return;
  const Operation operation = std::move(late->operation);
  operations.erase(late);
  operation(too_late(*queue), [](bool) {});
  pump(queue);
}

bool ContainerQueues::is_met(const Queue& queue, Needs needs) {
  switch (needs) {
    case Needs::kTurn:
      return true;
    case Needs::kTold:
      return queue.applied == queue.desired || queue.told == queue.desired;
    case Needs::kConverged:
      return queue.applied == queue.desired;
  }
  return false;
}

void ContainerQueues::pump(const QueuePtr& queue) {
  if (queue->busy || queue->closed) return;
  const bool converged = queue->applied == queue->desired;
  if (!queue->operations.empty() && is_met(*queue, queue->operations.front().needs)) {
    operate(queue, {});
  } else if (converged) {
    options_.converged(queue->container_id, *queue->applied);
    tell(queue, {});
  } else if (!queue->resting && !queue->blocked && !queue->queued) {
    queue->queued = true;
    turns_.push_back(queue);
    start_queued();
  }
}

void ContainerQueues::start_queued() {
  while (in_flight_ < options_.max_in_flight && !turns_.empty()) {
    const QueuePtr queue = turns_.front();
    turns_.pop_front();
    queue->queued = false;
    if (queue->busy || queue->closed) continue;
    if (queue->applied == queue->desired) {
      pump(queue);
    } else {
      apply(queue);
    }
  }
}

void ContainerQueues::apply(const QueuePtr& queue) {
  queue->busy = true;
  ++in_flight_;
  const CpusetTarget target = queue->desired;
  // Until the runtime has answered, the container may have either set.
  queue->applied.reset();
  queue->told.reset();
  options_.apply(queue->container_id, target,
                 [this, queue, target](const Applied& applied) { finish_apply(queue, target, applied); });
}

/// What was under way is not any more; a queue that took the place of this one begins.
void ContainerQueues::over(const QueuePtr& queue) {
  queue->busy = false;
  const auto former = closing_.find(queue->container_id);
  if (former == closing_.end() || former->second != queue) return;
  closing_.erase(former);
  const QueuePtr next = find(queue->container_id);
  if (!next || !std::exchange(next->waits_for_former, false)) return;
  next->busy = false;
  pump(next);
}

void ContainerQueues::finish_apply(const QueuePtr& queue, const CpusetTarget& target, const Applied& applied) {
  over(queue);
  --in_flight_;
  switch (applied.kind) {
    case Applied::Kind::kDone:
      queue->applied = queue->told = target;
      queue->failures = queue->unseen = 0;
      queue->last_error = {};
      break;
    case Applied::Kind::kBlocked:
      queue->blocked = true;
      queue->last_error = applied.error;
      break;
    case Applied::Kind::kUnseen:
      queue->told = target;
      queue->last_error = applied.error;
      ++queue->unseen;
      rest(queue);
      break;
    case Applied::Kind::kFailed:
      if (queue->closed) break;
      queue->last_error = applied.error;
      rest(queue);
      if (++queue->failures >= options_.patience) give_up(queue, applied.error);
      break;
  }
  pump(queue);
  start_queued();
}

void ContainerQueues::rest(const QueuePtr& queue) {
  queue->resting = true;
  options_.after(retry_delay(queue->failures + queue->unseen), [this, queue] {
    queue->resting = false;
    pump(queue);
  });
}

std::chrono::milliseconds ContainerQueues::retry_delay(std::uint32_t failures) const {
  const auto doubled = options_.first_retry * (1 << std::min(failures, 10U));
  return std::min<std::chrono::milliseconds>(doubled, options_.longest_retry);
}

void ContainerQueues::give_up(const QueuePtr& queue, const Status& status) {
  tell(queue, status);
  while (!queue->busy && !queue->closed && !queue->operations.empty() &&
         queue->operations.front().needs != Needs::kTurn) {
    operate(queue, status);
  }
}

void ContainerQueues::operate(const QueuePtr& queue, const Status& status) {
  queue->busy = true;
  const Waiting waiting = std::move(queue->operations.front());
  queue->operations.pop_front();
  // An operation that may change the cpuset leaves it open until it is over what the container has.
  if (waiting.needs == Needs::kTurn) {
    queue->before_operation = std::exchange(queue->applied, std::nullopt);
    queue->told.reset();
  }
  waiting.operation(status, [this, queue](bool invalidates) {
    over(queue);
    const auto before = std::exchange(queue->before_operation, std::nullopt);
    if (invalidates) {
      queue->applied.reset();
    } else if (!queue->applied) {
      queue->applied = before;
    }
    pump(queue);
  });
}

void ContainerQueues::tell(const QueuePtr& queue, const Status& status) {
  std::vector<Waiter> waiters;
  waiters.swap(queue->waiters);
  for (const Waiter& waiter : waiters) waiter.converged(status);
}

}  // namespace topolet::engine
