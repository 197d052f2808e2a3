#include "cluster/api/refusal.hpp"

#include <fmt/format.h>

namespace topolet::api {
namespace {

/// Returns the part of `text` after `before` and up to `end`; empty if `text` does not contain `before`.
std::string_view between(std::string_view text, std::string_view before, std::string_view end) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  return text.substr(0, text.find(end));
}

/// Policies of others are others' business.
std::string advice_on_policy(const Grants& grants, std::string_view policy) {
  if (!policy.starts_with("topolet-")) return fmt::format("; that policy is none of {}", grants.policies);
  if (policy == "topolet-zone-annotation") {
    return fmt::format(
        "; {} names who may set a pod's zone (policies.zoneWriters of the chart): the service account topolet-extender "
        "of its namespace",
        grants.policies);
  }
  if (policy.starts_with("topolet-agent-")) {
    return fmt::format(
        "; {} lets an agent write about its own node only, with the token that the kubelet gave its pod ({})",
        grants.policies, grants.pod);
  }
  return fmt::format("; {} has that policy", grants.policies);
}

/// Rights are an account's. Another one than that of the files has to be given them, or is there by mistake.
std::string advice_on_rights(const Grants& grants, std::string_view user, std::string_view verb,
                             std::string_view resource) {
  const std::string what =
      verb.empty() || resource.empty() ? std::string("it") : fmt::format("it ({} {})", verb, resource);
  std::string advice = fmt::format("; {} grants {} to the service account {}", grants.rights, what, grants.account);
  if (user == "system:anonymous") return advice + ", and this request was nobody's: it needs a token or a certificate";
  if (!user.empty() && !user.ends_with(':' + grants.account))
    advice += fmt::format(", which the pod of {} has; this is {}", grants.pod, user);
  return advice;
}

}  // namespace

std::string advice_on_refusal(const Grants& grants, std::string_view message) {
  if (const auto policy = between(message, "ValidatingAdmissionPolicy '", "'"); !policy.empty())
    return advice_on_policy(grants, policy);
  const bool is_about_rights = message.empty() || message.find(" cannot ") != std::string_view::npos;
  if (!is_about_rights) return {};
  return advice_on_rights(grants, between(message, "User \"", "\""), between(message, " cannot ", " "),
                          between(message, " resource \"", "\""));
}

}  // namespace topolet::api
