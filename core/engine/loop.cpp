#include "core/engine/loop.hpp"

#include <pthread.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace topolet::engine {

void assert_on_thread(const Loop& loop, const char* who) {
  if (loop.is_on_thread()) return;
  std::fprintf(stderr, "topoletd: %s was used outside of the engine's loop\n", who);
  std::abort();
}

ThreadLoop::ThreadLoop() : guard_(boost::asio::make_work_guard(context_)), thread_([this] { context_.run(); }) {
  ::pthread_setname_np(thread_.native_handle(), "topolet-loop");
}

ThreadLoop::~ThreadLoop() { end(); }

void ThreadLoop::post(std::function<void()> work) { boost::asio::post(context_, std::move(work)); }

void ThreadLoop::after(std::chrono::milliseconds delay, std::function<void()> work) {
  auto timer = std::make_shared<boost::asio::steady_timer>(context_, delay);
  timer->async_wait([timer, work = std::move(work)](const boost::system::error_code& error) {
    if (!error) work();
  });
}

void ThreadLoop::stop() { end(); }

void ThreadLoop::end() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace topolet::engine
