// Renews the token of an agent that is not a pod: the kubelet does not do it then.
#pragma once

#include <chrono>
#include <string>

#include "cluster/api/api.hpp"
#include "cluster/api/service_account_token.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"
#include "core/base/result.hpp"

namespace topolet::agent {

/// Has the API server make another token once more than half of the time of the one in the file is over, and puts it
/// into its place. Only for a token that is bound to a Node and to no pod: others are somebody else's to renew. All on
/// the thread of `api`.
class TokenRenewal {
 public:
  /// `api` and `log` must outlive it. It works from start() on, for as long as `api` runs tasks.
  TokenRenewal(api::Api& api, std::string token_file, Log& log);
  TokenRenewal(const TokenRenewal&) = delete;
  TokenRenewal& operator=(const TokenRenewal&) = delete;

  void start() { look(); }
  /// Why the token could not be renewed; empty: it could, or it need not be yet.
  const std::string& trouble() const { return trouble_.now(); }

 private:
  void look();
  void renew(const api::TokenClaims& claims);
  Status take(const std::string& token);

  api::Api& api_;
  const std::string token_file_;
  Log& log_;
  api::TroubleLog trouble_;
};

}  // namespace topolet::agent
