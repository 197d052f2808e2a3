// The one thread on which placements are made: a queue of work and timers.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <thread>

namespace topolet {

/// post() and after() may be called from any thread; what they are given runs on the loop's thread, in order.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void post(std::function<void()> work);
  void after(std::chrono::milliseconds delay, std::function<void()> work);
  /// Ends the thread; what is still queued is dropped. Idempotent.
  void stop();

 private:
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace topolet
