#include "core/placement/lanes.hpp"

#include <algorithm>
#include <utility>

namespace topolet {

Lanes::Lanes(LaneOptions options) : options_(std::move(options)) {}

Lanes::LanePtr Lanes::find(const std::string& container_id) const {
  const auto found = lanes_.find(container_id);
  return found == lanes_.end() ? nullptr : found->second;
}

void Lanes::open(const std::string& container_id, std::optional<CpusetTarget> confirmed, CpusetTarget target) {
  close(container_id);
  auto lane = std::make_shared<Lane>();
  lane->container_id = container_id;
  lane->confirmed = std::move(confirmed);
  lane->target = std::move(target);
  lanes_[container_id] = lane;
  pump(lane);
}

void Lanes::close(const std::string& container_id) {
  const LanePtr lane = find(container_id);
  if (!lane) return;
  lane->closed = true;
  lane->operations.clear();
  lanes_.erase(container_id);
  tell(lane, {});
}

std::optional<CpusetTarget> Lanes::confirmed(const std::string& container_id) const {
  const LanePtr lane = find(container_id);
  return lane ? lane->confirmed : std::nullopt;
}

void Lanes::set_target(const std::string& container_id, CpusetTarget target) {
  const LanePtr lane = find(container_id);
  if (!lane) return;
  lane->target = std::move(target);
  lane->failures = 0;
  pump(lane);
}

void Lanes::confirm(const std::string& container_id, CpusetTarget now) {
  if (const LanePtr lane = find(container_id); lane) lane->confirmed = std::move(now);
}

void Lanes::disturb(const std::string& container_id) {
  const LanePtr lane = find(container_id);
  if (!lane) return;
  lane->confirmed.reset();
  pump(lane);
}

void Lanes::when_settled(const std::string& container_id, std::chrono::milliseconds timeout, Settled settled) {
  const LanePtr lane = find(container_id);
  if (!lane) {
    settled({});
    return;
  }
  const std::uint64_t number = ++next_waiter_;
  lane->waiters.push_back({number, std::move(settled)});
  options_.after(timeout, [weak = std::weak_ptr<Lane>(lane), number] {
    const LanePtr waited = weak.lock();
    if (!waited) return;
    auto& waiters = waited->waiters;
    const auto late = std::find_if(waiters.begin(), waiters.end(), [&](const Waiter& w) { return w.number == number; });
    if (late == waiters.end()) return;
    const Settled callback = std::move(late->settled);
    waiters.erase(late);
    std::string why = waited->last_error.message.empty() ? "the runtime has not answered" : waited->last_error.message;
    callback(Error{Code::kUnavailable,
                   "the CPUs of container " + waited->container_id + " could not be set in time: " + std::move(why)});
  });
  pump(lane);
}

void Lanes::when_all_settled(const std::vector<std::string>& container_ids, std::chrono::milliseconds timeout,
                             Settled settled) {
  if (container_ids.empty()) {
    settled({});
    return;
  }
  struct Join {
    std::size_t missing;
    Settled settled;
  };
  auto join = std::make_shared<Join>(Join{container_ids.size(), std::move(settled)});
  for (const std::string& container_id : container_ids) {
    when_settled(container_id, timeout, [join](const Status& status) {
      if (!join->settled) return;
      if (!status || --join->missing == 0) std::exchange(join->settled, nullptr)(status);
    });
  }
}

bool Lanes::run(const std::string& container_id, Needs needs, Operation operation) {
  const LanePtr lane = find(container_id);
  if (!lane) return false;
  lane->operations.push_back({needs, std::move(operation)});
  pump(lane);
  return true;
}

void Lanes::pump(const LanePtr& lane) {
  if (lane->busy || lane->closed) return;
  const bool settled = lane->confirmed == lane->target;
  if (!lane->operations.empty() && (settled || lane->operations.front().needs == Needs::kTurn)) {
    operate(lane, {});
  } else if (settled) {
    tell(lane, {});
  } else if (!lane->resting && !lane->queued) {
    lane->queued = true;
    queue_.push_back(lane);
    start_queued();
  }
}

void Lanes::start_queued() {
  while (in_flight_ < options_.max_in_flight && !queue_.empty()) {
    const LanePtr lane = queue_.front();
    queue_.pop_front();
    lane->queued = false;
    if (lane->busy || lane->closed) continue;
    if (lane->confirmed == lane->target) {
      pump(lane);
    } else {
      apply(lane);
    }
  }
}

void Lanes::apply(const LanePtr& lane) {
  lane->busy = true;
  ++in_flight_;
  const CpusetTarget target = lane->target;
  // Until the runtime has answered, the container may have either set.
  lane->confirmed.reset();
  options_.apply(lane->container_id, target,
                 [this, lane, target](const Status& status) { applied(lane, target, status); });
}

void Lanes::applied(const LanePtr& lane, const CpusetTarget& target, const Status& status) {
  lane->busy = false;
  --in_flight_;
  if (status) {
    lane->confirmed = target;
    lane->failures = 0;
    lane->last_error = {};
  } else if (!lane->closed) {
    lane->last_error = status.error();
    rest(lane);
    if (++lane->failures >= options_.patience) give_up(lane, status);
  }
  pump(lane);
  start_queued();
}

void Lanes::rest(const LanePtr& lane) {
  lane->resting = true;
  options_.after(retry_delay(lane->failures), [this, lane] {
    lane->resting = false;
    pump(lane);
  });
}

std::chrono::milliseconds Lanes::retry_delay(std::uint32_t failures) const {
  const auto doubled = options_.first_retry * (1 << std::min(failures, 10U));
  return std::min<std::chrono::milliseconds>(doubled, options_.longest_retry);
}

void Lanes::give_up(const LanePtr& lane, const Status& status) {
  tell(lane, status);
  while (!lane->busy && !lane->closed && !lane->operations.empty() &&
         lane->operations.front().needs == Needs::kSettled) {
    operate(lane, status);
  }
}

void Lanes::operate(const LanePtr& lane, const Status& status) {
  lane->busy = true;
  const Waiting waiting = std::move(lane->operations.front());
  lane->operations.pop_front();
  // An operation that may change the cpuset leaves it open until it is over what the container has.
  std::optional<CpusetTarget> before = lane->confirmed;
  if (waiting.needs == Needs::kTurn) lane->confirmed.reset();
  waiting.operation(status, [this, lane, before = std::move(before)](bool disturbed) {
    lane->busy = false;
    if (disturbed) {
      lane->confirmed.reset();
    } else if (!lane->confirmed) {
      lane->confirmed = before;
    }
    pump(lane);
  });
}

void Lanes::tell(const LanePtr& lane, const Status& status) {
  std::vector<Waiter> waiters;
  waiters.swap(lane->waiters);
  for (const Waiter& waiter : waiters) waiter.settled(status);
}

}  // namespace topolet
