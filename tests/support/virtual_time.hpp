// Time that passes only when it is told to, and everything that is to happen in it, one thing after the other.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/base/clock.hpp"
#include "core/engine/loop.hpp"

namespace topolet::testing {

/// One thread. Must outlive the clocks and loops that were made of it.
class VirtualTime {
 public:
  using Work = std::function<void()>;

  std::chrono::milliseconds now() const { return now_; }
  Clock clock() const;

  /// Things that are due at the same time happen in the order in which they were asked for.
  void after(std::chrono::milliseconds delay, Work work) { due_.emplace(now_ + delay, std::move(work)); }

  /// Makes the next thing happen, at its own time, if that is not later than `end`. Otherwise it is `end` then, and the
  /// answer is false.
  bool step(std::chrono::milliseconds end);

 private:
  /// Not 0, which in places means "never".
  std::chrono::milliseconds now_ = std::chrono::hours(1);
  std::multimap<std::chrono::milliseconds, Work> due_;
};

/// A loop whose work is done in virtual time. One thread.
class VirtualLoop final : public engine::Loop {
 public:
  explicit VirtualLoop(VirtualTime& time) : time_(time) {}
  ~VirtualLoop() override { stop(); }
  VirtualLoop(const VirtualLoop&) = delete;
  VirtualLoop& operator=(const VirtualLoop&) = delete;

  bool is_on_thread() const override { return true; }
  void post(std::function<void()> work) override { after({}, std::move(work)); }
  void after(std::chrono::milliseconds delay, std::function<void()> work) override;
  /// Destroys all queued work, and any that comes later.
  void stop() override;

 private:
  /// Owned here alone, so that stopping the loop destroys what its work holds.
  using Queue = std::map<std::uint64_t, std::function<void()>>;

  VirtualTime& time_;
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::uint64_t last_number_ = 0;
};

}  // namespace topolet::testing
