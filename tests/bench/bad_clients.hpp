// Clients that misbehave, written onto the socket by hand.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace topolet::bench {

/// Returns the kinds of bad clients, for --kinds.
std::vector<std::string> bad_client_kinds();

/// Holds `connections` open that all do what `kind` says, as fast as the socket takes it, and connects again at once
/// where one is ended. In the foreground, until it is killed.
void run_bad_clients(const std::string& socket, const std::string& kind, std::size_t connections);

}  // namespace topolet::bench
