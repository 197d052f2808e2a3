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

void tell_stuck(const std::vector<engine::StuckContainer>& stuck, control::v1::StatusResponse& response) {
  std::vector<engine::StuckContainer> sorted = stuck;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.lasts > b.lasts; });
  if (sorted.size() > kMostTold) sorted.resize(kMostTold);
  for (const engine::StuckContainer& one : sorted) {
    control::v1::Stuck& told = *response.add_stuck();
    told.set_container(one.container);
    told.set_cpus(one.cpus.to_string());
    told.set_why(one.why);
    told.set_lasts_ms(one.lasts.count());
  }
  response.set_stuck_containers(static_cast<std::uint32_t>(stuck.size()));
}

void tell_overruled(const std::vector<engine::OverruledContainer>& overruled, control::v1::StatusResponse& response) {
  std::vector<engine::OverruledContainer> sorted = overruled;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.lasts > b.lasts; });
  if (sorted.size() > kMostTold) sorted.resize(kMostTold);
  for (const engine::OverruledContainer& one : sorted) {
    control::v1::Overruled& told = *response.add_overruled();
    told.set_container(one.container);
    told.set_cpus(one.cpus.to_string());
    told.set_seen_on(one.seen_on.to_string());
    told.set_lasts_ms(one.lasts.count());
    told.set_plugin(one.plugin);
  }
  response.set_overruled_containers(static_cast<std::uint32_t>(overruled.size()));
}

}  // namespace topolet::daemon
