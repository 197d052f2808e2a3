#include "core/engine/planning/zone_and_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/placement/candidates.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/zone.hpp"

namespace topolet::engine {
namespace {

namespace reason_code = placement::reason_code;

std::size_t count_near(const std::vector<NodeSet>& devices, const NodeSet& nodes) {
  return static_cast<std::size_t>(std::count_if(devices.begin(), devices.end(),
                                                [&nodes](const NodeSet& device) { return device.intersects(nodes); }));
}

/// Adds to the reason that it is outside its zone for its devices, if so.
void tell(const std::vector<NodeSet>& devices, const NodeSet& zone, placement::Decision& decision) {
  const bool is_outside = !decision.denied && !decision.nodes.empty() && !decision.nodes.is_subset_of(zone);
  if (!is_outside || count_near(devices, decision.nodes) <= count_near(devices, zone)) return;
  NodeSet near;
  for (const NodeSet& device : devices) near |= device;
  const bool is_said = decision.reason_code == reason_code::kZoneMissed;
  if (!is_said) decision.reason += placement::describe_outside_zone(zone);
  decision.reason += fmt::format(", which yields to its devices near {}", placement::node_names(near));
  const bool is_usual = is_said || decision.reason_code == reason_code::kBestScore;
  if (is_usual) decision.reason_code = reason_code::kZoneYielded;
}

}  // namespace

Plan plan_by_zone_and_devices(const topology::Topology& topology, const placement::Workload& workload,
                              const Placer::Constraints& constraints,
                              const std::function<Plan(const Placer::Constraints&)>& plan) {
  Plan in_zone = plan(constraints);
  if (!constraints.zone || !workload.kubelet_cpus.empty()) return in_zone;
  const NodeSet& zone = *constraints.zone;
  std::vector<NodeSet> devices = places_of_devices(topology, in_zone.decision.used_devices);
  const bool is_placed = !in_zone.lacks_cpus();
  if (is_placed && count_near(devices, zone) == devices.size()) return in_zone;
  Placer::Constraints without = constraints;
  without.zone.reset();
  Plan anywhere = plan(without);
  if (anywhere.decision.denied) return in_zone;
  devices = places_of_devices(topology, anywhere.decision.used_devices);
  const std::size_t near = count_near(devices, is_placed ? in_zone.decision.nodes : zone);
  Plan& best = count_near(devices, anywhere.decision.nodes) > near ? anywhere : in_zone;
  tell(devices, zone, best.decision);
  return std::move(best);
}

}  // namespace topolet::engine
