// The NUMA nodes that a node publishes in its NodeResourceTopology object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cluster/extender/node_rules.hpp"
#include "cluster/extender/resources.hpp"

namespace topolet::extender {

struct Zone {
  std::uint32_t os_index = 0;
  Amounts available;
  Amounts allocatable;
  std::optional<std::int64_t> effective_cpu_milli;  ///< what it can do at present, where somebody has told
};

/// The policy that a node enforces, in the words of the kubelet's topology manager.
enum class NodePolicy : std::uint8_t { kNone, kBestEffort, kRestricted, kSingleNumaNode };

/// The most zones that are read; no machine has more.
inline constexpr std::size_t kMostZones = 256;

struct NodeZones {
  std::string name;
  /// The object's resourceVersion: of two numbers, the larger one is newer. 0: it is not a number.
  std::uint64_t version = 0;
  std::uint64_t generation = 0;  ///< of topoletd's ledger; 0: another program has written it
  NodePolicy policy = NodePolicy::kNone;
  bool is_pod_scope = false;  ///< a pod's containers share their zones
  /// Containers may be in other zones than those that were chosen for them: nobody heeds these here.
  bool ignores_zones = false;
  NodeRules rules = {};
  std::vector<Zone> zones;  ///< by os_index
  /// SLIT distances, zone by zone in the order of `zones`; empty: not known.
  std::vector<std::uint16_t> distances;
  /// The beginnings of the uids of the pods that `available` counts, in order.
  std::vector<std::string> acknowledged;
  bool has_acknowledgements = false;  ///< it tells of them at all, as topolet-agent does
  std::string heartbeat;              ///< another text each time that the node's agent has written; empty: it has none

  bool acknowledges(const std::string& uid) const;
  std::uint16_t distance(std::size_t from, std::size_t to) const;
  /// Returns true if any zone publishes the resource.
  bool publishes(ResourceId resource) const;
};

/// Zones of another type than Node, or of another name than node-N, are left out, and so are amounts that are none, and
/// memory beside no CPUs: containers are not bound to it.
NodeZones read_node_zones(const nlohmann::json& object, ResourceNames& names);

}  // namespace topolet::extender
