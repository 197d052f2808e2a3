#include "plugins/numa/options.hpp"

#include <stdexcept>
#include <string>

#include "plugins/numa/quantities.hpp"

namespace topolet::numa {
namespace {

void refuse_both(bool both_set, const char* one, const char* other) {
  if (!both_set) return;
  throw std::invalid_argument(std::string(one) + " and " + other + " cannot be combined: set only one of them");
}

Strategy strategy_named(std::string_view name) {
  if (name == "roomy") return Strategy::kRoomy;
  return name == "spread" ? Strategy::kSpread : Strategy::kPacked;
}

/// More than a node has would leave nothing of it to anybody, without a word.
void refuse_more_than_there_is(const ReservedMemory& reserved, const topolet_topology& machine) {
  for (std::uint32_t i = 0; i < machine.node_count; ++i) {
    const topolet_node& node = *TOPOLET_AT(topolet_node, machine.nodes, machine.node_stride, i);
    const std::int64_t bytes = reserved.of(node.os_index);
    if (node.memory_bytes <= 0 || bytes <= node.memory_bytes) continue;
    throw std::invalid_argument("reserved-memory: " + format_bytes(bytes) + " for node " +
                                std::to_string(node.os_index) + " is more than its memory, " +
                                format_bytes(node.memory_bytes) +
                                "; lower it, or give each node its own amount (0:1Gi,1:512Mi)");
  }
}

}  // namespace

std::optional<Alignment> alignment_named(std::string_view name) {
  if (name == "none") return Alignment::kNone;
  if (name == "best-effort") return Alignment::kBestEffort;
  if (name == "restricted") return Alignment::kRestricted;
  if (name == "single-numa-node") return Alignment::kSingleNumaNode;
  return std::nullopt;
}

std::string_view name_of(Alignment alignment) {
  switch (alignment) {
    case Alignment::kNone:
      return "none";
    case Alignment::kBestEffort:
      return "best-effort";
    case Alignment::kRestricted:
      return "restricted";
    case Alignment::kSingleNumaNode:
      return "single-numa-node";
  }
  return "";
}

PolicyOptions read_options(const sdk::Options& options) {
  const auto is_set = [&options](std::string_view name) { return options[name] == "true"; };
  PolicyOptions read;
  // The host has checked that choices are among the allowed values.
  read.policy = alignment_named(options["policy"]).value_or(Alignment::kBestEffort);
  read.scope = options["scope"] == "pod" ? Scope::kPod : Scope::kContainer;
  read.strategy = strategy_named(options["strategy"]);
  read.shared_strategy = options["shared-strategy"] == "packed" ? Strategy::kPacked : Strategy::kSpread;
  read.soft_homes = options["shared-home"] == "soft";
  read.bind_memory = options["memory"] == "bind";
  read.requires_zone = options["zone"] == "require";
  read.reserved_memory = ReservedMemory(options["reserved-memory"]);
  if (const topolet_topology* machine = options.machine(); machine != nullptr)
    refuse_more_than_there_is(read.reserved_memory, *machine);
  read.order = {.full_pcpus_only = is_set("full-pcpus-only"),
                .distribute_cpus_across_numa = is_set("distribute-cpus-across-numa"),
                .distribute_cpus_across_cores = is_set("distribute-cpus-across-cores"),
                .prefer_align_cpus_by_uncorecache = is_set("prefer-align-cpus-by-uncorecache")};
  const auto isolated = options.configured("placement.isolated");
  read.gives_isolated = isolated == "prefer" || isolated == "always";
  read.rounds_up = options.configured("smt.round") == "idle-sibling";
  read.align_by_socket = is_set("align-by-socket");
  read.prefer_closest_numa_nodes = is_set("prefer-closest-numa-nodes");

  const KubeletOrder& order = read.order;
  refuse_both(order.full_pcpus_only && order.distribute_cpus_across_cores, "full-pcpus-only",
              "distribute-cpus-across-cores");
  refuse_both(order.distribute_cpus_across_numa && order.distribute_cpus_across_cores, "distribute-cpus-across-numa",
              "distribute-cpus-across-cores");
  refuse_both(order.prefer_align_cpus_by_uncorecache && order.distribute_cpus_across_cores,
              "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores");
  refuse_both(order.prefer_align_cpus_by_uncorecache && order.distribute_cpus_across_numa,
              "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa");
  refuse_both(read.align_by_socket && read.policy == Alignment::kSingleNumaNode, "align-by-socket",
              "policy = single-numa-node");
  return read;
}

}  // namespace topolet::numa
