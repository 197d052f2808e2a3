#include "plugins/gpu/headroom.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "plugins/gpu/locality.hpp"
#include "plugins/gpu/watched_devices.hpp"

namespace topolet::gpu {
namespace {

using sdk::Verdict;

constexpr std::int32_t kSecondBest = 2;
constexpr std::int32_t kWorst = 7;

/// A node with CPUs that may be taken.
struct NodeRoom {
  std::uint32_t os_index = 0;
  std::size_t free = 0;
  bool has_gpus = false;
  std::size_t wanted = 0;  ///< CPUs that its unused GPUs will want

  /// How many of those taking `count` CPUs costs.
  std::size_t cost_of(std::size_t count) const {
    const auto missing = [this](std::size_t left) { return wanted > left ? wanted - left : 0; };
    return missing(free - count) - missing(free);
  }
};

/// The cost of taking a container's CPUs from a candidate. Compared member by member, the lowest first.
struct Cost {
  std::size_t headroom = 0;  ///< CPUs that unused GPUs will want
  /// The free CPUs by which the node with GPUs falls short of the emptiest one. Filling one node after the other would
  /// bar all GPUs of the full ones, also those that come free later.
  std::size_t fullness = 0;

  friend auto operator<=>(const Cost&, const Cost&) = default;
};

/// More CPUs than any machine has.
constexpr std::size_t kNoRoomForPod = std::size_t{1} << 24U;

/// Whoever was placed before it was known that it only watches its devices is listed with them.
std::set<std::string_view> used_devices(const topolet_topology& topology, const topolet_ledger& ledger) {
  std::set<std::string_view> used;
  if (!TOPOLET_STRIDE_HAS(ledger.entry_stride, topolet_ledger_entry, used_devices)) return used;
  std::optional<DevicesByKind> kinds;  // few containers have several devices and request so little
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    DevicesByKind::Names names;
    for (std::size_t i = 0; i < entry.used_devices.count; ++i) names.insert(sdk::text(entry.used_devices.items[i]));
    const bool may_watch = entry.mode != TOPOLET_MODE_EXCLUSIVE && requests_less_than_a_cpu(entry.demand);
    if (may_watch && names.size() > 1) {
      if (!kinds) kinds.emplace(topology);
      for (const std::string_view watched : kinds->of_complete_kinds(names)) names.erase(watched);
    }
    used.merge(names);
  }
  return used;
}

/// The GPUs of the machine: how many are local to each node, and how many of those nobody uses, by position.
struct GpuCounts {
  std::vector<std::size_t> all, unused;

  explicit GpuCounts(const topolet_request& request)
      : all(request.topology->node_count, 0), unused(request.topology->node_count, 0) {
    const topolet_topology& topology = *request.topology;
    const std::size_t nodes = CpuNodes(topology).positions().size();
    const std::set<std::string_view> used = used_devices(topology, *request.ledger);
    const auto add = [&](const DeviceRef& ref, topolet_str name) {
      if (!is_accelerator(topology, ref)) return;
      const Nodes local = local_nodes_of(topology, ref);
      if (local.size() == nodes && nodes > 1) return;  // near all nodes, or nobody knows where it is
      for (const std::uint32_t node : local) {
        ++all[node];
        if (!used.contains(sdk::text(name))) ++unused[node];
      }
    };
    for (std::uint32_t i = 0; i < topology.pci_device_count; ++i)
      add({.pci_device = i}, sdk::pci_devices(topology)[i].address);
    for (std::uint32_t i = 0; i < topology.os_device_count; ++i) {
      const topolet_os_device& device = sdk::os_devices(topology)[i];
      if (device.pci_device == TOPOLET_NONE) add({.os_device = i}, device.name);
    }
  }

  bool any_unused() const {
    return std::any_of(unused.begin(), unused.end(), [](std::size_t count) { return count > 0; });
  }
};

/// Returns the room of each node, the most free CPUs first.
std::vector<NodeRoom> node_rooms(const topolet_request& request, const GpuCounts& gpus, const Headroom& headroom) {
  const sdk::Set free = sdk::union_of_candidates(request, &topolet_candidate::usable);
  const sdk::Set allowed = sdk::union_of_candidates(request, &topolet_candidate::cpus);
  std::vector<NodeRoom> rooms;
  for (std::uint32_t i = 0; i < request.topology->node_count; ++i) {
    const topolet_node& node = sdk::nodes(*request.topology)[i];
    NodeRoom room{node.os_index, sdk::size_of_both(node.cpus, free.view()), gpus.all[i] > 0, 0};
    if (node.memory_only != 0 || room.free == 0) continue;
    if (room.has_gpus) {
      const std::size_t share = sdk::size_of_both(node.cpus, allowed.view()) / gpus.all[i];
      room.wanted = gpus.unused[i] * headroom.cpus_per_gpu.value_or(share);
    }
    rooms.push_back(room);
  }
  std::stable_sort(rooms.begin(), rooms.end(), [](const NodeRoom& a, const NodeRoom& b) { return a.free > b.free; });
  return rooms;
}

/// CPUs are taken from those nodes of the candidate first that have the most free. Nothing if there are too few.
std::optional<Cost> cost_of(const topolet_candidate& candidate, const std::vector<NodeRoom>& rooms,
                            std::size_t wanted) {
  if (sdk::size_of(candidate.usable) < wanted) return std::nullopt;
  Cost cost;
  for (const NodeRoom& room : rooms) {
    if (wanted == 0) break;
    if (topolet_set_has(candidate.nodes, room.os_index) == 0) continue;
    const std::size_t taken = std::min(wanted, room.free);
    cost.headroom += room.cost_of(taken);
    if (room.has_gpus) cost.fullness = std::max(cost.fullness, rooms.front().free - (room.free - taken));
    wanted -= taken;
  }
  return cost;
}

/// The nodes where other containers of its pod are.
bool is_with_pod(const topolet_candidate& candidate, const Pod& pod) {
  const std::size_t nodes = sdk::size_of(candidate.nodes);
  return nodes > 0 && sdk::size_of_both(candidate.nodes, pod.nodes.view()) == nodes;
}

/// Returns the cost with the rest of the pod. A place without room for it costs more than anywhere else.
std::optional<Cost> cost_for_pod(const topolet_candidate& candidate, const std::vector<NodeRoom>& rooms,
                                 std::size_t cpus, const Pod& pod) {
  if (std::optional<Cost> whole = cost_of(candidate, rooms, cpus + pod.cpus_to_come)) return whole;
  std::optional<Cost> own = cost_of(candidate, rooms, cpus);
  if (own) own->headroom += kNoRoomForPod;
  return own;
}

std::string reason_of(const topolet_candidate& candidate, const Cost& cost, bool is_best) {
  const std::string where = nodes_text(candidate.nodes);
  if (cost.headroom >= kNoRoomForPod) return where + ": has no room for the rest of the pod";
  if (cost.headroom == 0) {
    return where + ": leaves the CPUs that unused GPUs will want" + (is_best ? "" : ", but others are emptier");
  }
  return where + ": takes " + sdk::counted(cost.headroom, "CPU") + " that unused GPUs will want" +
         (is_best ? "" : ", while others have more room");
}

}  // namespace

std::vector<Verdict> headroom_verdicts(const topolet_request& request, const Headroom& headroom, const Pod& pod) {
  if (headroom.is_off() || request.exclusive == 0) return {};
  const GpuCounts gpus(request);
  if (!gpus.any_unused()) return {};
  const std::vector<NodeRoom> rooms = node_rooms(request, gpus, headroom);
  std::vector<std::optional<Cost>> costs;
  // The costs of candidates of as many nodes, and as many with memory: local memory is worth more than room for others.
  const sdk::NodesWithoutMemory without_memory(*request.topology);
  const auto place_of = [&](const topolet_candidate& candidate) {
    const std::size_t nodes = sdk::size_of(candidate.nodes);
    return std::pair(nodes, without_memory.count_in(candidate.nodes, nodes == 0));
  };
  std::map<std::pair<std::size_t, std::size_t>, std::set<Cost>> by_place;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    costs.push_back(is_with_pod(candidate, pod) ? Cost() : cost_for_pod(candidate, rooms, request.exclusive_cpus, pod));
    if (sdk::size_of(candidate.usable) < request.exclusive_cpus) costs.back().reset();
    if (costs.back()) by_place[place_of(candidate)].insert(*costs.back());
  }
  const bool differ =
      std::any_of(by_place.begin(), by_place.end(), [](const auto& all) { return all.second.size() > 1; });
  if (!differ) return {};
  std::vector<Verdict> verdicts(request.candidate_count);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (!costs[i]) continue;
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    const std::set<Cost>& all = by_place[place_of(candidate)];
    const auto better = static_cast<std::int32_t>(std::distance(all.begin(), all.find(*costs[i])));
    const std::int32_t penalty = better == 0 ? 0 : std::min(kSecondBest + better - 1, kWorst);
    verdicts[i] = {TOPOLET_VERDICT_SCORE, -penalty, reason_of(candidate, *costs[i], better == 0)};
  }
  return verdicts;
}

}  // namespace topolet::gpu
