#include "core/watch/server.hpp"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <string_view>
#include <utility>

#include "core/control/answer.hpp"

namespace topolet::watch {
namespace {

constexpr std::size_t kMaxConnections = 64;
/// Calls of one kind that wait for their answer. Whoever asks without end is told to wait.
constexpr int kMaxWaiting = 64;
constexpr std::string_view kServicePath = "/topolet.watch.v1.Watch/";

using boost::asio::thread_pool;

}  // namespace

struct WatchServer::Impl {
  Impl(WatchHandlers watch_handlers, Feed& watch_feed) : handlers(std::move(watch_handlers)), feed(watch_feed) {}

  /// Calls that are answered on a thread, one after the other.
  struct Queue {
    std::atomic<int> waiting = 0;
    thread_pool thread{1};
  };
  template <class Answer>
  void queue(Queue& queue, std::shared_ptr<cri::OwnCall> call, Answer answer) {
    if (queue.waiting >= kMaxWaiting) {
      return call->reject(
          {Code::kResourceExhausted, fmt::format("{} calls wait already; ask less often", kMaxWaiting)});
    }
    ++queue.waiting;
    boost::asio::post(queue.thread, [this, &queue, call = std::move(call), answer = std::move(answer)] {
      --queue.waiting;
      if (stopping) return control::reject_at_end(*call);
      if (!call->has_ended()) answer(*call);
    });
  }
  void answer_fits(cri::OwnCall& call) const {
    control::answer<v1::FitsRequest, v1::FitsResponse>(call, [this, &call](const auto& request, auto& response) {
      return handlers.fits(request, response, [this, &call] { return !stopping && !call.has_ended(); });
    });
  }
  void answer_metrics(cri::OwnCall& call) const {
    control::answer<v1::MetricsRequest, v1::MetricsResponse>(
        call, [this](const auto&, auto& response) { return handlers.metrics(response); });
  }

  const WatchHandlers handlers;
  Feed& feed;
  std::unique_ptr<cri::Listener> listener;
  std::atomic<bool> stopping = false;
  Queue fits;
  Queue metrics;
};

WatchServer::WatchServer() = default;

WatchServer::~WatchServer() { stop(); }

Result<std::unique_ptr<WatchServer>> WatchServer::open(Options options, cri::Listener::Sockets sockets,
                                                       WatchHandlers handlers, Feed& feed, Log& log) {
  auto listener = cri::Listener::open({.path = std::move(options.path),
                                       .mode = 0660,
                                       .group = options.group,
                                       .inherited_fd = sockets.socket.release(),
                                       .inherited_lock_fd = sockets.lock.release(),
                                       .max_connections = kMaxConnections,
                                       .max_memory_bytes = options.max_memory_bytes,
                                       .memory_claims = std::move(options.memory_claims)},
                                      log);
  if (!listener) return listener.error();
  std::unique_ptr<WatchServer> server(new WatchServer());
  server->impl_ = std::make_unique<Impl>(std::move(handlers), feed);
  server->impl_->listener = *std::move(listener);
  return server;
}

void WatchServer::start(cri::Listener::OnConnection on_connection) { impl_->listener->start(std::move(on_connection)); }

void WatchServer::on_call(std::shared_ptr<cri::OwnCall> call) {
  if (impl_->stopping) return control::reject_at_end(*call);
  const std::string_view path = call->path();
  const std::string_view method = path.starts_with(kServicePath) ? path.substr(kServicePath.size()) : "";
  if (method == "Watch") return impl_->feed.subscribe(std::move(call));
  if (method == "Fits") {
    return impl_->queue(impl_->fits, std::move(call), [impl = impl_.get()](auto& asked) { impl->answer_fits(asked); });
  }
  if (method == "Metrics") {
    return impl_->queue(impl_->metrics, std::move(call),
                        [impl = impl_.get()](auto& asked) { impl->answer_metrics(asked); });
  }
  call->reject({Code::kUnimplemented,
                fmt::format("the watch socket has no method {}; it changes nothing and answers Watch, Fits and Metrics "
                            "of topolet.watch.v1 only",
                            path)});
}

cri::Listener::Sockets WatchServer::duplicate_sockets() const { return impl_->listener->duplicate_sockets(); }

void WatchServer::disown_file() { impl_->listener->disown_file(); }

void WatchServer::stop() {
  if (impl_->stopping.exchange(true)) return;
  impl_->listener->stop();
  impl_->feed.stop();
  impl_->fits.thread.join();
  impl_->metrics.thread.join();
  impl_->listener->disconnect_all();
}

}  // namespace topolet::watch
