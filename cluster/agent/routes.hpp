// The routes of the agent's two HTTP addresses.
#pragma once

#include <functional>
#include <string>

#include "cluster/agent/node.hpp"
#include "cluster/agent/watch_client.hpp"
#include "cluster/http/http_server.hpp"
#include "core/base/clock.hpp"

namespace topolet::agent {

/// /metrics, /healthz and /readyz. `more`: further metrics in the text format. All must outlive the server.
http::HttpServer::Handlers metrics_routes(
    const Node& node, const WatchClient& client, std::function<std::string()> more = [] { return std::string(); });

/// The page and what it asks for. Only requests for a loopback address or localhost by name are answered: another name
/// that leads here would be somebody else's page, asking in a browser's name. `node` must outlive the server.
http::HttpServer::Handlers page_routes(Node& node, Clock clock = {});
/// To be sent with every answer to the page: it may load nothing from elsewhere, and nobody may frame it.
std::vector<std::pair<std::string, std::string>> page_headers();

}  // namespace topolet::agent
