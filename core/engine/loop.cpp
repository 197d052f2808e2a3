#include "core/engine/loop.hpp"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

namespace topolet::engine {

void assert_on_thread(const Loop& loop, const char* who) {
  if (loop.is_on_thread()) return;
  std::fprintf(stderr, "topoletd: %s was used outside of the engine's loop\n", who);
  std::abort();
}

struct ThreadLoop::Impl {
  Impl() : guard(boost::asio::make_work_guard(context)), thread([this] { context.run(); }) {
    ::pthread_setname_np(thread.native_handle(), "topolet-loop");
  }
  ~Impl() { end(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void end() {
    context.stop();
    if (thread.joinable()) thread.join();
  }

  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard;
  std::thread thread;
};

ThreadLoop::ThreadLoop() : impl_(std::make_unique<Impl>()) {}

ThreadLoop::~ThreadLoop() = default;

bool ThreadLoop::is_on_thread() const { return std::this_thread::get_id() == impl_->thread.get_id(); }

void ThreadLoop::post(std::function<void()> work) { boost::asio::post(impl_->context, std::move(work)); }

void ThreadLoop::after(std::chrono::milliseconds delay, std::function<void()> work) {
  auto timer = std::make_shared<boost::asio::steady_timer>(impl_->context, delay);
  timer->async_wait([timer, work = std::move(work)](const boost::system::error_code& error) {
    if (!error) work();
  });
}

void ThreadLoop::stop() { impl_->end(); }

}  // namespace topolet::engine
