#include "tests/support/virtual_time.hpp"

namespace topolet::testing {

Clock VirtualTime::clock() const {
  return {.wall = [this] { return now_; }, .steady = [this] { return std::chrono::steady_clock::time_point(now_); }};
}

bool VirtualTime::step(std::chrono::milliseconds end) {
  if (due_.empty() || due_.begin()->first > end) {
    now_ = end;
    return false;
  }
  auto next = due_.extract(due_.begin());
  now_ = next.key();
  next.mapped()();
  return true;
}

void VirtualLoop::after(std::chrono::milliseconds delay, std::function<void()> work) {
  if (!queue_) return;
  const std::uint64_t number = ++last_number_;
  queue_->emplace(number, std::move(work));
  time_.after(delay, [weak = std::weak_ptr<Queue>(queue_), number] {
    const std::shared_ptr<Queue> queue = weak.lock();
    if (!queue) return;
    const auto next = queue->extract(number);
    if (!next.empty()) next.mapped()();
  });
}

void VirtualLoop::stop() {
  // Out of reach first: what is destroyed may ask for more.
  const std::shared_ptr<Queue> dropped = std::move(queue_);
  queue_ = nullptr;
}

}  // namespace topolet::testing
