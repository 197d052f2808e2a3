#include "core/daemon/overlaps.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

namespace topolet::daemon {
namespace {

/// As control.proto says. Hundreds of containers may overlap with each of dozens of owners.
constexpr std::size_t kMostTold = 100;

}  // namespace

std::uint32_t count_overlapping(const std::vector<engine::Overlap>& overlaps) {
  std::set<std::string> containers;
  for (const engine::Overlap& overlap : overlaps) containers.insert(overlap.container);
  return static_cast<std::uint32_t>(containers.size());
}

void tell_overlaps(const std::vector<engine::Overlap>& overlaps, control::v1::StatusResponse& response) {
  std::vector<engine::Overlap> sorted = overlaps;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const engine::Overlap& a, const engine::Overlap& b) { return a.seen_for > b.seen_for; });
  if (sorted.size() > kMostTold) sorted.resize(kMostTold);
  for (const engine::Overlap& overlap : sorted) {
    control::v1::Overlap& told = *response.add_overlaps();
    told.set_container(overlap.container);
    told.set_owner(overlap.owner);
    told.set_cpus(overlap.cpus.to_string());
    told.set_seen_for_ms(overlap.seen_for.count());
  }
  response.set_overlapping_containers(count_overlapping(overlaps));
}

}  // namespace topolet::daemon
