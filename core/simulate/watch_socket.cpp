#include "core/simulate/watch_socket.hpp"

#include <atomic>
#include <chrono>
#include <utility>

#include "core/cri/wire/proxy.hpp"
#include "core/watch/feed.hpp"
#include "core/watch/messages.hpp"
#include "core/watch/server.hpp"

namespace topolet::simulate {
namespace {

/// The time after which a thread that waits for the simulation notices the end of the socket.
constexpr std::chrono::milliseconds kCheckAgain{10};
/// The gRPC server asks for one; nothing of a watch socket is sent there.
constexpr const char* kNoRuntime = "unix:///nonexistent";

}  // namespace

struct WatchSocket::Impl {
  Impl(ComputeFits compute, std::timed_mutex& simulation)
      : compute_fits(std::move(compute)), busy(simulation), feed({.version = TOPOLET_VERSION}) {}

  Status answer_fits(const watch::v1::FitsRequest& request, watch::v1::FitsResponse& response,
                     const watch::WatchHandlers::IsWanted& is_wanted) {
    const Result<std::vector<engine::PendingContainer>> pending = watch::pending_of(request);
    if (!pending) return pending.error();
    std::unique_lock lock(busy, std::defer_lock);
    while (!lock.try_lock_for(kCheckAgain)) {
      if (ending) return Error{Code::kUnavailable, "the simulated topoletd ends"};
    }
    const Result<engine::Engine::NodeFits> found =
        compute_fits(*pending, [&is_wanted] { return is_wanted() ? Status() : Status(watch::nobody_waits()); });
    if (!found) return found.error();
    Result<watch::v1::FitsResponse> answer = watch::answer_of(found->fits);
    if (!answer) return answer.error();
    response = *std::move(answer);
    response.set_instance(feed.instance());
    response.set_reconciled(found->reconciled);
    return {};
  }

  const ComputeFits compute_fits;
  std::timed_mutex& busy;
  std::atomic<bool> ending = false;
  watch::Feed feed;
  std::unique_ptr<cri::OwnServer> server;
  std::unique_ptr<cri::Proxy> proxy;
};

WatchSocket::WatchSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

WatchSocket::~WatchSocket() { stop(); }

Result<std::unique_ptr<WatchSocket>> WatchSocket::open(Options options, ComputeFits compute_fits,
                                                       std::timed_mutex& busy, Log& log) {
  auto impl = std::make_unique<Impl>(std::move(compute_fits), busy);
  impl->feed.set_plugins(std::move(options.plugins));
  watch::WatchHandlers handlers;
  handlers.fits = [it = impl.get()](const auto& request, auto& response, const auto& is_wanted) {
    return it->answer_fits(request, response, is_wanted);
  };
  handlers.metrics = [](watch::v1::MetricsResponse& response) {
    response.set_text("# A simulated topoletd measures nothing.\n");
    return Status();
  };
  auto server =
      watch::open_server({.path = std::move(options.path), .group = {}, .max_memory_bytes = options.max_memory_bytes},
                         {}, std::move(handlers), impl->feed, log);
  if (!server) return server.error();
  impl->server = *std::move(server);
  cri::ProxyHooks hooks;
  hooks.on_own_call = [it = impl.get()](std::shared_ptr<cri::OwnCall> call) { it->server->on_call(std::move(call)); };
  impl->proxy = std::make_unique<cri::Proxy>(cri::ProxyOptions{.runtime_endpoint = kNoRuntime}, std::move(hooks), log);
  impl->proxy->start();
  impl->server->start([it = impl.get()](UniqueFd connection) {
    return it->proxy->accept_own(std::move(connection), cri::OwnSocket::kWatch);
  });
  return std::unique_ptr<WatchSocket>(new WatchSocket(std::move(impl)));
}

engine::Observer& WatchSocket::observer() { return impl_->feed; }

void WatchSocket::stop() {
  if (impl_->ending.exchange(true)) return;
  impl_->server->stop();
  impl_->proxy->stop();
}

}  // namespace topolet::simulate
