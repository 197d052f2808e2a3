// A connection that speaks HTTP/2, which has many requests underway at once: a kube-scheduler binds pods in parallel,
// and each would be another connection, with a TLS handshake of its own, in HTTP/1.1.
#pragma once

#include "cluster/http/server_core.hpp"

namespace topolet::http {

/// Streams of events are not served: a client that asks for one must use HTTP/1.1.
std::shared_ptr<Connection> make_http2_connection(ServerCore& server, std::uint64_t number, SecureStream secure);

}  // namespace topolet::http
