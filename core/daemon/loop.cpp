#include "core/daemon/loop.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

namespace topolet {

Loop::Loop() : guard_(boost::asio::make_work_guard(context_)), thread_([this] { context_.run(); }) {}

Loop::~Loop() { stop(); }

void Loop::post(std::function<void()> work) { boost::asio::post(context_, std::move(work)); }

void Loop::after(std::chrono::milliseconds delay, std::function<void()> work) {
  auto timer = std::make_shared<boost::asio::steady_timer>(context_, delay);
  timer->async_wait([timer, work = std::move(work)](const boost::system::error_code& error) {
    if (!error) work();
  });
}

void Loop::stop() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace topolet
