#include "core/watch/server.hpp"

#include <utility>

#include "core/control/answer.hpp"
#include "core/cri/call.hpp"

namespace topolet::watch {
namespace {

constexpr std::size_t kMaxConnections = 64;
/// Calls of one kind that wait for their answer. Whoever asks without end is told to wait.
constexpr int kMaxWaiting = 64;

/// On which thread a method is answered.
enum Queue : std::size_t { kFits, kMetrics };

cri::OwnServer::Service service_of(WatchHandlers handlers, Feed& feed) {
  const auto shared = std::make_shared<const WatchHandlers>(std::move(handlers));
  const auto answer_fits = [shared](cri::OwnCall& call, const WatchHandlers::IsWanted& is_wanted) {
    control::answer<v1::FitsRequest, v1::FitsResponse>(
        call, [&](const auto& request, auto& response) { return shared->fits(request, response, is_wanted); });
  };
  const auto answer_metrics = [shared](cri::OwnCall& call, const WatchHandlers::IsWanted&) {
    control::answer<v1::MetricsRequest, v1::MetricsResponse>(
        call, [&shared](const auto&, auto& response) { return shared->metrics(response); });
  };
  const auto subscribe = [&feed](std::shared_ptr<cri::OwnCall> call) { feed.subscribe(std::move(call)); };
  return {.path = "/topolet.watch.v1.Watch/",
          .methods = {{"Watch", {.take = subscribe}},
                      {"Fits", {.queue = kFits, .answer = answer_fits}},
                      {"Metrics", {.queue = kMetrics, .answer = answer_metrics}}},
          .socket = "the watch socket",
          .what_else = "it changes nothing and answers Watch, Fits and Metrics of topolet.watch.v1 only",
          .most_waiting = kMaxWaiting,
          .skips_unwanted = true,
          .on_stop = [&feed] { feed.stop(); },
          .disconnects_at_stop = true};
}

}  // namespace

Result<std::unique_ptr<cri::OwnServer>> open_server(WatchOptions options, cri::Listener::Sockets sockets,
                                                    WatchHandlers handlers, Feed& feed, Log& log) {
  return cri::OwnServer::open({.path = std::move(options.path),
                               .mode = 0660,
                               .group = options.group,
                               .max_connections = kMaxConnections,
                               .max_memory_bytes = options.max_memory_bytes,
                               .memory_claims = std::move(options.memory_claims)},
                              std::move(sockets), service_of(std::move(handlers), feed), log);
}

}  // namespace topolet::watch
