#include "cluster/agent/kubernetes/setup_warnings.hpp"

#include <fmt/format.h>

#include <utility>

namespace topolet::agent {

/// A topoletd that is older than these fields tells none of it.
std::map<std::string, std::string> setup_warnings(const std::string& node_name, const watch::v1::FitsResponse& fits) {
  std::map<std::string, std::string> warnings;
  if (fits.kubelet_hands_out_cpus()) {
    warnings[illness::kKubeletStatic] =
        "the kubelet hands out CPUs itself (cpuManagerPolicy: static), and on which NUMA node is its choice: the zones "
        "are published with the policy none, and nothing is placed by zones that count on topolet; set its policy to "
        "none, as `topolet config kubelet` prints";
  }
  if (!fits.node_name().empty() && fits.node_name() != node_name) {
    warnings[illness::kNodeName] = fmt::format(
        "topoletd calls this node {} (daemon.node-name), and its Node is {} (--node-name): the zones that a scheduler "
        "chooses are ignored here; set daemon.node-name = {} in topolet.conf",
        fits.node_name(), node_name, node_name);
  }
  if (fits.ignores_zones()) {
    warnings[illness::kZoneAnnotation] =
        "placement.annotations in topolet.conf does not list zone: the zones that a scheduler chooses are ignored "
        "here; add it";
  }
  return warnings;
}

void SetupWarnings::look_at(const watch::v1::FitsResponse& fits) {
  std::map<std::string, std::string> next = setup_warnings(node_name_, fits);
  for (const auto& [word, text] : next) {
    const auto before = now_.find(word);
    if (before == now_.end() || before->second != text) log_.warn("{}", text);
  }
  for (const auto& [word, text] : now_) {
    if (!next.contains(word)) log_.info("this is over: {}", text);
  }
  now_ = std::move(next);
}

}  // namespace topolet::agent
