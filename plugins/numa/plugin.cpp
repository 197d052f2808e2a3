#include <array>
#include <string_view>

#include "plugins/numa/policy.hpp"

namespace {

constexpr std::array<topolet_str, 4> kPolicies = {
    {TOPOLET_STR("none"), TOPOLET_STR("best-effort"), TOPOLET_STR("restricted"), TOPOLET_STR("single-numa-node")}};
constexpr std::array<topolet_str, 2> kScopes = {{TOPOLET_STR("container"), TOPOLET_STR("pod")}};
constexpr std::array<topolet_str, 2> kStrategies = {{TOPOLET_STR("packed"), TOPOLET_STR("spread")}};
constexpr std::array<topolet_str, 2> kMemory = {{TOPOLET_STR("none"), TOPOLET_STR("bind")}};

template <std::size_t Count>
constexpr topolet_option choice(topolet_str name, topolet_str value, const std::array<topolet_str, Count>& allowed,
                                topolet_str help) {
  return {name, TOPOLET_OPTION_CHOICE, 0, value, {allowed.data(), allowed.size()}, 0, 0, help};
}

constexpr topolet_option flag(topolet_str name, topolet_str help) {
  return {name, TOPOLET_OPTION_BOOL, 0, TOPOLET_STR("false"), {nullptr, 0}, 0, 0, help};
}

constexpr std::array<topolet_option, 11> kOptions = {{
    choice(TOPOLET_STR("policy"), TOPOLET_STR("best-effort"), kPolicies,
           TOPOLET_STR("The kubelet's Topology Manager policy of the same name; none: its CPU manager's order alone.")),
    choice(TOPOLET_STR("scope"), TOPOLET_STR("container"), kScopes,
           TOPOLET_STR("What is placed together: each container for itself, or all of a pod on the same nodes.")),
    choice(TOPOLET_STR("strategy"), TOPOLET_STR("packed"), kStrategies,
           TOPOLET_STR("Between nodes that serve equally well: packed takes the fullest one, spread the emptiest.")),
    choice(TOPOLET_STR("memory"), TOPOLET_STR("none"), kMemory,
           TOPOLET_STR("bind: containers with a memory limit get the memory of the nodes that they run on only.")),
    {TOPOLET_STR("reserved-memory"),
     TOPOLET_OPTION_STRING,
     0,
     TOPOLET_STR(""),
     {nullptr, 0},
     0,
     0,
     TOPOLET_STR("Memory of each node that is not for containers: 1Gi for every one, or 0:1Gi,1:512Mi by node.")},
    flag(TOPOLET_STR("full-pcpus-only"), TOPOLET_STR("Deny exclusive requests that are no multiple of a core's CPUs.")),
    flag(TOPOLET_STR("distribute-cpus-across-numa"),
         TOPOLET_STR("Take CPUs evenly from nodes if it takes more than one.")),
    flag(TOPOLET_STR("distribute-cpus-across-cores"), TOPOLET_STR("Take CPUs of different cores first.")),
    flag(TOPOLET_STR("align-by-socket"), TOPOLET_STR("Nodes of one package are as aligned as one node.")),
    flag(TOPOLET_STR("prefer-closest-numa-nodes"),
         TOPOLET_STR("Let the distance of nodes count for more, and the strategy for less.")),
    flag(TOPOLET_STR("prefer-align-cpus-by-uncorecache"),
         TOPOLET_STR("Take CPUs of as few last-level caches as can be.")),
}};

class NumaPlugin : public topolet::numa::Policy {
 public:
  explicit NumaPlugin(const topolet::sdk::Options& options) : Policy(topolet::numa::read_options(options)) {}
};

}  // namespace

TOPOLET_PLUGIN(NumaPlugin, "numa", TOPOLET_NUMA_VERSION, kOptions);
