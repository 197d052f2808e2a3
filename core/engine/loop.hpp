// The engine's event loop: runs queued work and timers one after the other.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace topolet::engine {

/// post() and after() may be called from any thread unless an implementation says otherwise; what they are given runs
/// on the loop's thread, in order.
class Loop {
 public:
  virtual ~Loop() = default;
  /// True on the thread that runs the work; before it has run any, perhaps on all.
  virtual bool is_on_thread() const = 0;
  virtual void post(std::function<void()> work) = 0;
  virtual void after(std::chrono::milliseconds delay, std::function<void()> work) = 0;
  /// Drops the work that is still queued. Idempotent.
  virtual void stop() = 0;
};

/// Ends the process with a message unless called on the loop's thread. `who`: what only that thread may use.
void assert_on_thread(const Loop& loop, const char* who);

/// One thread of its own, and real time.
class ThreadLoop final : public Loop {
 public:
  ThreadLoop();
  ~ThreadLoop() override;
  ThreadLoop(const ThreadLoop&) = delete;
  ThreadLoop& operator=(const ThreadLoop&) = delete;

  bool is_on_thread() const override;
  void post(std::function<void()> work) override;
  void after(std::chrono::milliseconds delay, std::function<void()> work) override;
  void stop() override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace topolet::engine
