// The contents of a service account's token.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace topolet::api {

struct TokenClaims {
  std::string name_space;
  std::string service_account;
  std::string pod;   ///< that it is bound to; empty: to none
  std::string node;  ///< that it is bound to, or its pod's; empty: it names none
  std::string node_uid;
  std::chrono::seconds issued_at{};  ///< since the Unix epoch
  std::chrono::seconds expires_at{};
};

/// Reads the claims; nothing if it is not such a token, or never ends. Only the API server can tell if it is genuine.
std::optional<TokenClaims> read_token_claims(std::string_view token);

}  // namespace topolet::api
