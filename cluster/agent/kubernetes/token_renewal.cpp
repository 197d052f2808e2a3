#include "cluster/agent/kubernetes/token_renewal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cluster/api/json_fields.hpp"
#include "core/base/read_file.hpp"
#include "core/base/rfc3339.hpp"
#include "core/base/text.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;

/// The file may be replaced by somebody, and the clock set; short tokens are looked at more often.
constexpr std::chrono::seconds kLookAgain{600};
constexpr std::chrono::seconds kLookAgainEarliest{10};
constexpr int kLooksInALife = 24;
constexpr std::size_t kMaxTokenBytes = 1 << 20;

/// From a half to two thirds of its time: the tokens of many nodes, made at once, are not renewed at once.
std::chrono::seconds renewal_time(const api::TokenClaims& claims) {
  constexpr std::size_t kParts = 1000;
  const auto life = claims.expires_at - claims.issued_at;
  const auto part = static_cast<std::int64_t>(std::hash<std::string>()(claims.node_uid) % kParts);
  return claims.issued_at + life / 2 + life / 6 * part / static_cast<std::int64_t>(kParts);
}

json request_for(const api::TokenClaims& claims) {
  return {{"apiVersion", "authentication.k8s.io/v1"},
          {"kind", "TokenRequest"},
          {"spec",
           {{"audiences", json::array()},
            {"expirationSeconds", (claims.expires_at - claims.issued_at).count()},
            {"boundObjectRef",
             {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", claims.node}, {"uid", claims.node_uid}}}}}};
}

/// Nobody else may read it, and nobody finds half of it.
Status write_secret(const std::string& path, const std::string& text) {
  const std::string made = path + ".new";
  const auto fail = [&path] { return Error{Code::kUnavailable, fmt::format("{} cannot be written", path)}; };
  static_cast<void>(std::remove(made.c_str()));
  const UniqueFd file(::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file) return fail();
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return fail();
  if (::fsync(file.get()) != 0) return fail();
  if (std::rename(made.c_str(), path.c_str()) != 0) return fail();
  return {};
}

}  // namespace

TokenRenewal::TokenRenewal(api::Api& api, std::string token_file, Log& log)
    : api_(api),
      token_file_(std::move(token_file)),
      log_(log),
      trouble_(fmt::format("the token in {} cannot be renewed", token_file_), log) {}

void TokenRenewal::look() {
  const Result<std::string> token = read_file(token_file_, kMaxTokenBytes);
  const auto claims = token ? api::read_token_claims(trimmed(*token)) : std::nullopt;
  const bool is_ours = claims && !claims->node.empty() && claims->pod.empty();
  const bool is_due = is_ours && api_.wall_time() >= renewal_time(*claims);
  if (is_due) renew(*claims);
  if (claims && !is_due) trouble_.works();  // somebody else has put another one there
  const auto often = is_ours ? (claims->expires_at - claims->issued_at) / kLooksInALife : kLookAgain;
  api_.after(std::clamp(often, kLookAgainEarliest, kLookAgain), [this] { look(); });
}

void TokenRenewal::renew(const api::TokenClaims& claims) {
  api_.request(
      {.verb = "create",
       .method = "POST",
       .path = fmt::format("/api/v1/namespaces/{}/serviceaccounts/{}/token", claims.name_space, claims.service_account),
       .body = request_for(claims)},
      [this, ends = claims.expires_at](const api::ApiAnswer& answer) {
        const std::string token = api::text_field(answer.body, "status", "token");
        const Status taken = answer.ok() ? take(token) : Error{Code::kUnavailable, answer.error};
        if (taken) return trouble_.works();
        const char* remedy = answer.status == 403 ? " (deploy/kubernetes/agent-token.yaml lets agents do it)" : "";
        trouble_.failed(fmt::format("{}{}; it ends at {}, and deploy/kubernetes/agent-kubeconfig makes another one",
                                    taken.error().message, remedy, rfc3339(ends)));
      });
}

Status TokenRenewal::take(const std::string& token) {
  const auto claims = api::read_token_claims(token);
  if (!claims) return Error{Code::kUnavailable, "the API server answered without a token"};
  if (Status written = write_secret(token_file_, token); !written) return written;
  log_.info("the token in {} is renewed, until {}", token_file_, rfc3339(claims->expires_at));
  return {};
}

}  // namespace topolet::agent
