// Where placements are made, one piece of work after the other: a queue of work and timers.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <thread>

namespace topolet {

/// post() and after() may be called from any thread unless an implementation says otherwise; what they are given runs
/// on the loop's thread, in order.
class Loop {
 public:
  virtual ~Loop() = default;
  virtual void post(std::function<void()> work) = 0;
  virtual void after(std::chrono::milliseconds delay, std::function<void()> work) = 0;
  /// What is still queued is dropped. Idempotent.
  virtual void stop() = 0;
};

/// One thread of its own, and real time.
class ThreadLoop final : public Loop {
 public:
  ThreadLoop();
  ~ThreadLoop() override;
  ThreadLoop(const ThreadLoop&) = delete;
  ThreadLoop& operator=(const ThreadLoop&) = delete;

  void post(std::function<void()> work) override;
  void after(std::chrono::milliseconds delay, std::function<void()> work) override;
  void stop() override;

 private:
  void end();

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace topolet
