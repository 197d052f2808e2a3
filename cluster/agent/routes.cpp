#include "cluster/agent/routes.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "cluster/agent/metrics.hpp"
#include "cluster/agent/page_files.hpp"

namespace topolet::agent {
namespace {

/// Prometheus gives up after ten seconds by default.
constexpr std::chrono::seconds kMetricsPatience{3};
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

http::HttpResponse not_found(const std::string& paths) {
  return {404, "text/plain; charset=utf-8", "there is: " + paths + '\n'};
}

/// Returns the agent's metrics, and topoletd's if it can be reached.
http::HttpResponse metrics(const Node& node, const WatchClient& client, const std::string& more) {
  std::string text = agent_metrics(node, client) + more;
  const Result<std::string> of_daemon = client.metrics(kMetricsPatience);
  if (of_daemon) text += *of_daemon;
  return {200, kMetricsType, std::move(text)};
}

http::HttpResponse readiness(const Node& node) {
  const std::string missing = node.not_ready();
  if (!missing.empty()) return {503, "text/plain; charset=utf-8", missing + '\n'};
  return {200, "text/plain; charset=utf-8", "ready\n"};
}

}  // namespace

http::HttpServer::Handlers metrics_routes(const Node& node, const WatchClient& client,
                                          std::function<std::string()> more) {
  http::HttpServer::Handlers handlers;
  handlers.answer = [&node, &client, more = std::move(more)](const http::HttpRequest& request) -> http::HttpResponse {
    if (request.path == "/metrics") return metrics(node, client, more());
    if (request.path == "/healthz") return {200, "text/plain; charset=utf-8", "alive\n"};
    if (request.path == "/readyz") return readiness(node);
    return not_found("/metrics, /healthz, /readyz");
  };
  return handlers;
}

http::HttpServer::Handlers page_routes(Node& node, Clock clock) {
  http::HttpServer::Handlers handlers;
  handlers.answer = [&node, clock = std::move(clock)](const http::HttpRequest& request) -> http::HttpResponse {
    if (!http::is_loopback_host(request.host)) {
      return {403, "text/plain; charset=utf-8",
              "the page is for this host: ask for it by localhost or 127.0.0.1, through a port-forward for example\n"};
    }
    if (request.path == "/api/history") return {200, "application/json", node.history(clock.wall())};
    const PageFile* file = find_page_file(request.path);
    if (file == nullptr) return not_found("/, /api/changes, /api/history");
    return {200, fmt::format("{}; charset=utf-8", file->content_type), std::string(file->content)};
  };
  handlers.is_stream = [](const http::HttpRequest& request) {
    return request.path == "/api/changes" && http::is_loopback_host(request.host);
  };
  handlers.begin_stream = [&node](std::shared_ptr<http::EventStream> stream) {
    return node.follow([stream = std::move(stream)](const std::shared_ptr<const Node::Update>& update) {
      if (update->begins_anew) {
        stream->begin_anew(update->text);
      } else {
        stream->send(update->text);
      }
    });
  };
  handlers.end_stream = [&node](std::uint64_t number) { node.unfollow(number); };
  handlers.renew_stream = [&node](std::uint64_t number) { node.renew(number); };
  return handlers;
}

std::vector<std::pair<std::string, std::string>> page_headers() {
  return {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "
       "'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Referrer-Policy", "no-referrer"}};
}

}  // namespace topolet::agent
