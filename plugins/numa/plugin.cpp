#include <array>
#include <cstdint>
#include <string>

#include "plugins/numa/policy.hpp"

namespace {

namespace sdk = topolet::sdk;

constexpr std::array<topolet_str, 4> kPolicies = {
    {TOPOLET_STR("none"), TOPOLET_STR("best-effort"), TOPOLET_STR("restricted"), TOPOLET_STR("single-numa-node")}};
constexpr std::array<topolet_str, 2> kScopes = {{TOPOLET_STR("container"), TOPOLET_STR("pod")}};
constexpr std::array<topolet_str, 3> kStrategies = {
    {TOPOLET_STR("packed"), TOPOLET_STR("spread"), TOPOLET_STR("roomy")}};
constexpr std::array<topolet_str, 2> kSharedStrategies = {{TOPOLET_STR("packed"), TOPOLET_STR("spread")}};
constexpr std::array<topolet_str, 2> kHomes = {{TOPOLET_STR("strict"), TOPOLET_STR("soft")}};
constexpr std::array<topolet_str, 2> kMemory = {{TOPOLET_STR("none"), TOPOLET_STR("bind")}};
constexpr std::array<topolet_str, 2> kZone = {{TOPOLET_STR("prefer"), TOPOLET_STR("require")}};

constexpr std::array<topolet_option, 14> kOptions = {{
    sdk::choice_option(
        "policy", "best-effort", kPolicies,
        "Which Topology Manager policy to follow; none only takes CPUs in the order of the kubelet's CPU manager."),
    sdk::choice_option(
        "scope", "container", kScopes,
        "What is placed together: each container on its own, or all containers of a pod on the same nodes."),
    sdk::choice_option("strategy", "packed", kStrategies,
                       "Which of equally good nodes to use for exclusive CPUs: packed takes the fullest, spread the "
                       "emptiest, and roomy the emptiest as long as each node keeps room for a large container."),
    sdk::choice_option("shared-strategy", "spread", kSharedStrategies,
                       "The same for containers that share CPUs, whose requests are the least that they use."),
    sdk::choice_option("shared-home", "strict", kHomes,
                       "Whether containers that share CPUs run on those of their nodes only (strict), or also on CPUs "
                       "that the nearest nodes have to spare while nearly all of their own are used (soft)."),
    sdk::choice_option("memory", "none", kMemory,
                       "bind restricts the memory of containers with a memory limit to the nodes that they run on."),
    sdk::string_option("reserved-memory", "",
                       "Memory that containers may not use: 1Gi for every node, or 0:1Gi,1:512Mi node by node."),
    sdk::choice_option("zone", "prefer", kZone,
                       "What to do if the nodes that a scheduler has chosen for a container (topolet.io/zone) have no "
                       "room: use others, or deny it."),
    sdk::bool_option("full-pcpus-only",
                     "Deny requests for exclusive CPUs that are not a multiple of the threads of a core."),
    sdk::bool_option("distribute-cpus-across-numa", "Take the CPUs evenly from the nodes if one node is not enough."),
    sdk::bool_option("distribute-cpus-across-cores", "Take CPUs of different cores first."),
    sdk::bool_option("align-by-socket", "Treat the nodes of one package as aligned, as if they were one node."),
    sdk::bool_option("prefer-closest-numa-nodes",
                     "Give the distance between nodes more weight, and the strategy less."),
    sdk::bool_option("prefer-align-cpus-by-uncorecache", "Take CPUs of as few last-level caches as possible."),
}};

class NumaPlugin : public topolet::numa::Policy {
 public:
  NumaPlugin(const sdk::Options& options, const sdk::Host& host) : Policy(topolet::numa::read_options(options)) {
    const topolet_topology* machine = options.machine();
    if (machine == nullptr) return;
    const topolet::numa::ReservedMemory reserved(options["reserved-memory"]);
    for (const std::uint32_t node : reserved.nodes_missing_on(*machine)) {
      host.log(TOPOLET_LOG_WARN, "reserved-memory names node " + std::to_string(node) +
                                     ", which this machine does not have; topolet nodes lists those that it has");
    }
  }
};

}  // namespace

TOPOLET_PLUGIN(NumaPlugin, "numa", TOPOLET_NUMA_VERSION, kOptions);
