#include "plugins/numa/pod_place.hpp"

#include <algorithm>
#include <cstddef>

#include "plugins/numa/quantities.hpp"

namespace topolet::numa {
namespace {

/// Nobody's pod is on more of them, as far as it matters; bounds what one candidate costs.
constexpr std::size_t kMostParts = 8;

/// Returns true for another container of the same pod, not an earlier attempt of this one. Pods made by hand may have
/// no uid.
bool is_of_pod(const topolet_request& request, const topolet_ledger_entry& entry) {
  const topolet_workload& workload = *request.workload;
  return !sdk::text(workload.pod_uid).empty() && entry.mode != TOPOLET_MODE_FOREIGN &&
         sdk::text(entry.pod_uid) == sdk::text(workload.pod_uid) &&
         sdk::text(entry.container_name) != sdk::text(workload.container_name);
}

std::int64_t milli_of(const topolet_ledger_entry& entry) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32U;
  const std::int64_t asked = entry.demand == nullptr ? 0 : non_negative(entry.demand->cpu_request_milli);
  if (entry.mode != TOPOLET_MODE_EXCLUSIVE) return std::min(asked, kMost);
  return std::min(std::max(asked, static_cast<std::int64_t>(sdk::size_of(entry.cpus)) * 1000), kMost);
}

std::int64_t memory_of_entry(const topolet_ledger_entry& entry) {
  return entry.demand == nullptr ? 0 : non_negative(entry.demand->memory_request_bytes);
}

bool is_on_one_node(const topolet_topology& topology, topolet_set cpus) {
  const std::size_t all = sdk::size_of(cpus);
  for (const topolet_node& node : sdk::nodes(topology)) {
    if (const std::size_t here = sdk::size_of_both(node.cpus, cpus); here > 0) return here == all;
  }
  return false;
}

}  // namespace

PlacedOfPod placed_of_pod(const topolet_request& request) {
  PlacedOfPod placed;
  for (const topolet_ledger_entry& entry : sdk::entries(*request.ledger)) {
    if (!is_of_pod(request, entry)) continue;
    placed.milli += milli_of(entry);
    placed.memory_bytes += memory_of_entry(entry);
  }
  return placed;
}

PodPlace::PodPlace(const topolet_request& request) : topology_(*request.topology) {
  const auto nodes = sdk::nodes(topology_);
  for (const topolet_ledger_entry& entry : sdk::entries(*request.ledger)) {
    if (!is_of_pod(request, entry)) continue;
    const auto all = static_cast<std::int64_t>(sdk::size_of(entry.cpus));
    const bool asks = milli_of(entry) > 0 || memory_of_entry(entry) > 0;
    // One that requests nothing mostly runs everywhere.
    if (all == 0 || (!asks && !is_on_one_node(topology_, entry.cpus))) continue;
    const std::int64_t milli = std::max(milli_of(entry), all);
    std::int64_t on_nodes = 0;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      const auto here = static_cast<std::int64_t>(sdk::size_of_both(nodes[i].cpus, entry.cpus));
      if (here == 0 || nodes[i].memory_only != 0) continue;
      on_nodes += here;
      add(i, milli * here / all);
    }
    if (on_nodes < all) add(kOutside, milli * (all - on_nodes) / all);
  }
  if (parts_.empty()) return;
  std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.milli > b.milli; });
  parts_.resize(std::min(parts_.size(), kMostParts));
  packages_.resize(nodes.size(), TOPOLET_NONE);
  for (const topolet_pu& pu : sdk::pus(topology_)) {
    if (pu.node < packages_.size() && packages_[pu.node] == TOPOLET_NONE) packages_[pu.node] = pu.package;
  }
}

void PodPlace::add(std::uint32_t node, std::int64_t milli) {
  const auto known = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.node == node; });
  if (known != parts_.end()) {
    known->milli += milli;
  } else {
    parts_.push_back({node, milli});
  }
}

/// Returns the distance between different nodes. A broken table may have it as short as that of a node to itself.
std::uint32_t PodPlace::distance(std::uint32_t from, std::uint32_t to) const {
  constexpr std::uint32_t kToItself = 10;
  constexpr std::uint32_t kSamePackage = 5;  // where the machine reports no distances
  constexpr std::uint32_t kFarthest = 1000;
  if (topology_.distances_known == 0) {
    const bool is_same = packages_[from] != TOPOLET_NONE && packages_[from] == packages_[to];
    return is_same ? kSamePackage : kToItself;
  }
  const std::uint32_t distance = topology_.distances[from * std::size_t{topology_.node_count} + to];
  return std::clamp(distance, kToItself + 1, kFarthest) - kToItself;
}

std::uint32_t PodPlace::distance_to(const std::vector<std::uint32_t>& positions, bool has_others) const {
  constexpr std::uint32_t kFromOutside = 1000;
  constexpr std::int64_t kSteps = 16;  // of one SLIT distance
  std::int64_t sum = 0;
  std::int64_t all = 0;
  for (const Part& part : parts_) {
    const bool is_there = part.node == kOutside
                              ? has_others
                              : std::find(positions.begin(), positions.end(), part.node) != positions.end();
    all += part.milli;
    if (is_there) continue;
    std::uint32_t nearest = kFromOutside;
    for (const std::uint32_t node : positions) {
      if (part.node != kOutside) nearest = std::min(nearest, distance(part.node, node));
    }
    sum += part.milli * nearest;
  }
  return sum == 0
             ? 0
             : static_cast<std::uint32_t>(std::max<std::int64_t>(1, sum * kSteps / std::max<std::int64_t>(1, all)));
}

}  // namespace topolet::numa
