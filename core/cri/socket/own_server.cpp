#include "core/cri/socket/own_server.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <string_view>
#include <utility>

namespace topolet::cri {
namespace {

void reject_at_end(OwnCall& call) { call.reject({Code::kUnavailable, "topoletd is shutting down; try again"}); }

}  // namespace

struct OwnServer::Queue {
  std::atomic<int> waiting = 0;
  boost::asio::thread_pool thread{1};
};

OwnServer::OwnServer(std::unique_ptr<Listener> listener, Service service)
    : listener_(std::move(listener)), service_(std::move(service)) {
  for (const auto& [name, method] : service_.methods) {
    if (method.answer && queues_.count(method.queue) == 0) queues_[method.queue] = std::make_unique<Queue>();
  }
}

OwnServer::~OwnServer() { stop(); }

Result<std::unique_ptr<OwnServer>> OwnServer::open(ListenerOptions options, Listener::Sockets sockets, Service service,
                                                   Log& log) {
  options.inherited_fd = sockets.socket.release();
  options.inherited_lock_fd = sockets.lock.release();
  auto listener = Listener::open(options, log);
  if (!listener) return listener.error();
  return std::unique_ptr<OwnServer>(new OwnServer(*std::move(listener), std::move(service)));
}

void OwnServer::start(Listener::OnConnection on_connection) { listener_->start(std::move(on_connection)); }

void OwnServer::on_call(std::shared_ptr<OwnCall> call) {
  if (stopping_) return reject_at_end(*call);
  const std::string_view path = call->path();
  const auto method = path.starts_with(service_.path) ? service_.methods.find(path.substr(service_.path.size()))
                                                      : service_.methods.end();
  if (method == service_.methods.end()) {
    return call->reject(
        {Code::kUnimplemented, fmt::format("{} has no method {}; {}", service_.socket, path, service_.what_else)});
  }
  if (method->second.take) return method->second.take(std::move(call));
  post(method->second, std::move(call));
}

void OwnServer::post(const Method& method, std::shared_ptr<OwnCall> call) {
  Queue& queue = *queues_.at(method.queue);
  if (service_.most_waiting && queue.waiting >= *service_.most_waiting) {
    return call->reject(
        {Code::kResourceExhausted, fmt::format("{} calls wait already; ask less often", *service_.most_waiting)});
  }
  ++queue.waiting;
  boost::asio::post(queue.thread, [this, &queue, &method, call = std::move(call)] {
    --queue.waiting;
    if (stopping_) return reject_at_end(*call);
    if (service_.skips_unwanted && call->has_ended()) return;
    method.answer(*call, [this, &call] { return !stopping_ && !call->has_ended(); });
  });
}

void OwnServer::stop() {
  if (stopping_.exchange(true)) return;
  listener_->stop();
  if (service_.on_stop) service_.on_stop();
  for (auto& [number, queue] : queues_) queue->thread.join();
  if (service_.disconnects_at_stop) listener_->disconnect_all();
}

}  // namespace topolet::cri
