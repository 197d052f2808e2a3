#include "plugins/gpu/headroom.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {
namespace {

constexpr std::int32_t kSecondBest = 2;
constexpr std::int32_t kWorst = 7;

/// A node with CPUs that may be taken.
struct NodeRoom {
  std::uint32_t os_index = 0;
  std::size_t free = 0;
  std::size_t unused_gpus = 0;
  std::size_t headroom = 0;  ///< CPUs for each GPU

  /// How many GPUs find `cpus` CPUs each if `free` are free.
  std::size_t served(std::size_t cpus, std::size_t free_cpus) const { return std::min(unused_gpus, free_cpus / cpus); }

  /// What taking `count` CPUs costs, in thousandths of a GPU.
  std::size_t cost_of(std::size_t count) const {
    std::size_t lost = 0;
    for (std::size_t cpus = 1; cpus <= headroom && unused_gpus > 0; ++cpus) {
      lost += served(cpus, free) - served(cpus, free - count);
    }
    return headroom == 0 ? 0 : 1000 * lost / headroom;
  }
};

std::set<std::string_view> used_devices(const topolet_ledger& ledger) {
  std::set<std::string_view> used;
  if (!TOPOLET_STRIDE_HAS(ledger.entry_stride, topolet_ledger_entry, used_devices)) return used;
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    for (std::size_t i = 0; i < entry.used_devices.count; ++i) used.insert(sdk::text(entry.used_devices.items[i]));
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
    const std::set<std::string_view> used = used_devices(*request.ledger);
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

/// Those with the most free CPUs first.
std::vector<NodeRoom> node_rooms(const topolet_request& request, const GpuCounts& gpus, const Headroom& headroom) {
  const sdk::Set free = sdk::union_of_candidates(request, &topolet_candidate::free);
  const sdk::Set allowed = sdk::union_of_candidates(request, &topolet_candidate::cpus);
  std::vector<NodeRoom> rooms;
  for (std::uint32_t i = 0; i < request.topology->node_count; ++i) {
    const topolet_node& node = sdk::nodes(*request.topology)[i];
    NodeRoom room{node.os_index, sdk::size_of_both(node.cpus, free.view()), gpus.unused[i], 0};
    if (node.memory_only != 0 || room.free == 0) continue;
    if (gpus.all[i] > 0) {
      room.headroom = headroom.cpus_per_gpu.value_or(sdk::size_of_both(node.cpus, allowed.view()) / gpus.all[i]);
    }
    rooms.push_back(room);
  }
  std::stable_sort(rooms.begin(), rooms.end(), [](const NodeRoom& a, const NodeRoom& b) { return a.free > b.free; });
  return rooms;
}

/// What it costs to take the container's CPUs from these nodes, from those with the most free CPUs first; nothing if
/// they have too few.
std::optional<std::size_t> cost_of(const topolet_candidate& candidate, const std::vector<NodeRoom>& rooms,
                                   std::size_t wanted) {
  if (sdk::size_of(candidate.free) < wanted) return std::nullopt;
  std::size_t cost = 0;
  for (const NodeRoom& room : rooms) {
    if (wanted == 0) break;
    if (topolet_set_has(candidate.nodes, room.os_index) == 0) continue;
    const std::size_t taken = std::min(wanted, room.free);
    cost += room.cost_of(taken);
    wanted -= taken;
  }
  return cost;
}

std::string reason_of(const topolet_candidate& candidate, std::size_t cost, bool is_best) {
  const std::string where = nodes_text(candidate.nodes);
  if (cost == 0) return where + ": leaves room for CPUs beside unused GPUs";
  std::string part = std::to_string(cost / 1000) + '.' + std::to_string(cost % 1000 / 100);
  if (cost < 100) part = "hardly any";
  return where + ": takes room for CPUs beside unused GPUs (" + part + " of them)" +
         (is_best ? "" : ", more than elsewhere");
}

}  // namespace

Headroom parse_headroom(std::string_view text) {
  if (text.empty() || text == "auto") return {};
  std::size_t cpus = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpus);
  constexpr std::size_t kMost = 4096;
  if (error != std::errc() || end != text.data() + text.size() || cpus > kMost) {
    throw std::invalid_argument("headroom: '" + std::string(text) +
                                "' is neither auto nor a number of CPUs from 0 to 4096");
  }
  return {cpus};
}

std::vector<Verdict> headroom_verdicts(const topolet_request& request, const Headroom& headroom) {
  if (headroom.is_off() || request.exclusive == 0) return {};
  const GpuCounts gpus(request);
  if (!gpus.any_unused()) return {};
  const std::vector<NodeRoom> rooms = node_rooms(request, gpus, headroom);
  std::vector<std::optional<std::size_t>> costs;
  std::map<std::size_t, std::set<std::size_t>> by_width;  // the costs of candidates of as many nodes
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    costs.push_back(cost_of(candidate, rooms, request.exclusive_cpus));
    if (costs.back()) by_width[sdk::size_of(candidate.nodes)].insert(*costs.back());
  }
  const bool differ =
      std::any_of(by_width.begin(), by_width.end(), [](const auto& all) { return all.second.size() > 1; });
  if (!differ) return {};
  std::vector<Verdict> verdicts(request.candidate_count);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (!costs[i]) continue;
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    const std::set<std::size_t>& all = by_width[sdk::size_of(candidate.nodes)];
    const auto better = static_cast<std::int32_t>(std::distance(all.begin(), all.find(*costs[i])));
    const std::int32_t penalty = better == 0 ? 0 : std::min(kSecondBest + better - 1, kWorst);
    verdicts[i] = {TOPOLET_VERDICT_SCORE, -penalty, reason_of(candidate, *costs[i], better == 0)};
  }
  return verdicts;
}

}  // namespace topolet::gpu
