#include "plugins/gpu/judge.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {
namespace {

using Nodes = std::vector<std::uint32_t>;  // positions

constexpr std::size_t kMostOthers = 3;
constexpr std::size_t kMostUnknown = 4;
constexpr double kSpread = 8;  // points among equals for CPUs that are near no device, and half of that for tiers

std::string nodes_text(const sdk::Set& nodes) {
  if (nodes.empty()) return "CPUs without a node";
  return (nodes.size() == 1 ? "node " : "nodes ") + nodes.to_string();
}

std::string count_of(std::size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + 's';
}

/// What some nodes are to the devices.
struct Standing {
  double nearness = 0;  ///< 0 to 1 in the mean; 1 is local
  std::size_t local = 0;
  Closeness tier = Closeness::kSameSwitch;  ///< of the local devices, the two that are farthest apart
  double spread = 0;                        ///< share of the nodes that no device is local to
  std::uint32_t nearest = 0, farthest = 0;  ///< distances of the devices that are not local; 0: none
  bool in_package = false;                  ///< all of these are in the package of one of the nodes
  bool is_cut = false;                      ///< there are more nodes than CPUs for them

  /// 0 to 12; among nodes of the same nearness.
  std::int32_t shortfall() const {
    return static_cast<std::int32_t>(std::lround(kSpread * spread)) + static_cast<std::int32_t>(tier) +
           (farthest > 0 && !in_package ? 1 : 0);
  }
};

class Bench {
 public:
  Bench(const topolet_request& request, const Sought& sought)
      : request_(request), topology_(*request.topology), nodes_(topology_) {
    for (const Device& device : sought.devices) {
      Nodes homes = homes_of(topology_, device.spot);
      // One that is near to every node, or to none, is no reason to prefer any.
      const bool is_everywhere = homes.size() == nodes_.positions().size() && homes.size() > 1;
      if (homes.empty() || is_everywhere) {
        placeless_.push_back(device.name);
        continue;
      }
      const std::string_view noun = noun_of(topology_, device.spot);
      noun_ = noun_.empty() || noun_ == noun ? noun : "device";
      devices_.push_back({device.spot, std::move(homes)});
    }
    for (const Placed& one : devices_) {
      for (const Placed& other : devices_) tiers_.push_back(closeness(topology_, nodes_, one.spot, other.spot));
    }
    for (const std::string& why : sought.unknown) notes_.push_back(why);
    for (const std::string& name : placeless_) notes_.push_back(name + ": the machine ties it to no node");
  }

  bool has_devices() const { return !devices_.empty(); }

  /// Of a candidate's usable nodes. A container with fewer CPUs of its own than nodes is in the best ones for it.
  Standing standing(const Nodes& nodes) const {
    const Nodes reached = within_reach(nodes);
    Standing standing;
    standing.in_package = true;
    std::vector<std::size_t> local;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const std::uint32_t distance = distance_to(devices_[i], reached);
      standing.nearness += nearness_at(distance) / static_cast<double>(devices_.size());
      if (distance == 0) {
        for (const std::size_t other : local) {
          standing.tier = std::max(standing.tier, tiers_[i * devices_.size() + other]);
        }
        local.push_back(i);
        continue;
      }
      standing.nearest = standing.farthest == 0 ? distance : std::min(standing.nearest, distance);
      standing.farthest = std::max(standing.farthest, distance);
      standing.in_package = standing.in_package && is_in_package(devices_[i], reached);
    }
    standing.local = local.size();
    standing.is_cut = reached.size() < nodes.size();
    const auto idle = std::count_if(nodes.begin(), nodes.end(), [&](std::uint32_t node) {
      return std::none_of(local.begin(), local.end(), [&](std::size_t i) { return is_home(devices_[i], node); });
    });
    standing.spread = nodes.empty() ? 1 : static_cast<double>(idle) / static_cast<double>(nodes.size());
    return standing;
  }

  /// However few CPUs there are.
  bool misses_one(const Nodes& nodes) const {
    return std::any_of(devices_.begin(), devices_.end(),
                       [&](const Placed& device) { return distance_to(device, nodes) != 0; });
  }

  std::string text(const std::string& where, const Standing& standing) const {
    std::string text = where + ": ";
    if (standing.local == 0) {
      text += "none";
    } else {
      text += std::to_string(standing.local) + " of " + count_of(devices_.size(), noun_) + " local";
      if (standing.local > 1) text += ", " + std::string(name_of(standing.tier));
    }
    if (standing.farthest == kUnknownDistance) return text + ", distance not known";
    if (standing.farthest > 0) {
      text += ", +" + std::to_string(standing.nearest);
      if (standing.nearest != standing.farthest) text += " to +" + std::to_string(standing.farthest);
      text += topology_.distances_known != 0 ? " distance" : " distance assumed";
      if (standing.in_package) text += ", same package";
    }
    return text;
  }

  /// Why a candidate is worth what it is: its own standing, what others would be, and what is not counted.
  std::string reason(const topolet_candidate& candidate, const Nodes& usable, const Standing& standing) const {
    std::string reason = text(nodes_text(candidate.nodes), standing);
    const sdk::Set full = without_free_cpus(candidate, usable);
    if (!full.empty()) reason += ", no free CPU on " + nodes_text(full);
    if (standing.is_cut) reason += ", counting as many nodes as it has CPUs";
    std::size_t said = 0;
    for (const auto& [node, other] : others_) {
      if (topolet_set_has(candidate.nodes, nodes_.os_index(node)) != 0) continue;
      if (said++ < kMostOthers) reason += "; " + other;
    }
    if (said > kMostOthers) reason += "; " + std::to_string(said - kMostOthers) + " more nodes";
    return reason + notes();
  }

  std::string notes() const {
    std::string text;
    for (std::size_t i = 0; i < std::min(notes_.size(), kMostUnknown); ++i) text += "; not counted: " + notes_[i];
    if (notes_.size() > kMostUnknown) text += " and " + std::to_string(notes_.size() - kMostUnknown) + " more";
    return text;
  }

  /// For the reasons: each node alone, the nearest first.
  void compare_nodes() {
    std::vector<std::pair<double, std::uint32_t>> order;
    for (const std::uint32_t node : nodes_.positions()) order.emplace_back(-standing({node}).nearness, node);
    std::sort(order.begin(), order.end());
    for (const auto& [_, node] : order) {
      sdk::Set alone;
      alone.insert(nodes_.os_index(node));
      others_.emplace_back(node, text(nodes_text(alone), standing({node})));
    }
  }

  Nodes usable(const topolet_candidate& candidate) const { return nodes_.usable(candidate); }

 private:
  struct Placed {
    Spot spot;
    Nodes homes;
  };

  static constexpr std::uint32_t kUnknownDistance = std::numeric_limits<std::uint32_t>::max();

  static bool is_home(const Placed& device, std::uint32_t node) {
    return std::find(device.homes.begin(), device.homes.end(), node) != device.homes.end();
  }

  /// As many of the nodes as the container has CPUs for: those that are local to the most devices.
  Nodes within_reach(const Nodes& nodes) const {
    if (request_.exclusive == 0 || nodes.size() <= request_.exclusive_cpus) return nodes;
    Nodes reached;
    Nodes rest = nodes;
    while (reached.size() < request_.exclusive_cpus) {
      const auto best = std::max_element(rest.begin(), rest.end(), [&](std::uint32_t a, std::uint32_t b) {
        return nearness_with(reached, a) < nearness_with(reached, b);
      });
      reached.push_back(*best);
      rest.erase(best);
    }
    return reached;
  }

  double nearness_with(Nodes nodes, std::uint32_t more) const {
    nodes.push_back(more);
    double sum = 0;
    for (const Placed& device : devices_) sum += nearness_at(distance_to(device, nodes));
    return sum;
  }

  /// 0: local. Remote memory at 20 is worth half of what is local, at 40 a quarter; never as much.
  std::uint32_t distance_to(const Placed& device, const Nodes& nodes) const {
    std::uint32_t least = kUnknownDistance;
    for (const std::uint32_t node : nodes) {
      if (is_home(device, node)) return 0;
      for (const std::uint32_t home : device.homes) least = std::min(least, nodes_.distance(node, home));
    }
    return std::max(least, 1U);
  }

  static double nearness_at(std::uint32_t distance) {
    if (distance == 0) return 1;
    return distance == kUnknownDistance ? 0 : std::min(0.9, 10.0 / distance);
  }

  bool is_in_package(const Placed& device, const Nodes& nodes) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t node) {
      return std::any_of(device.homes.begin(), device.homes.end(),
                         [&](std::uint32_t home) { return nodes_.share_a_package(node, home); });
    });
  }

  /// Homes of devices that are in the candidate, but full.
  sdk::Set without_free_cpus(const topolet_candidate& candidate, const Nodes& usable) const {
    sdk::Set full;
    for (const std::uint32_t node : nodes_.positions()) {
      const bool is_in = topolet_set_has(candidate.nodes, nodes_.os_index(node)) != 0;
      const bool is_usable = std::find(usable.begin(), usable.end(), node) != usable.end();
      const bool matters =
          std::any_of(devices_.begin(), devices_.end(), [node](const Placed& device) { return is_home(device, node); });
      if (is_in && !is_usable && matters) full.insert(nodes_.os_index(node));
    }
    return full;
  }

  const topolet_request& request_;
  const topolet_topology& topology_;
  const CpuNodes nodes_;
  std::vector<Placed> devices_;
  std::vector<Closeness> tiers_;  ///< of each pair of devices
  std::string_view noun_;
  std::vector<std::string> placeless_;
  std::vector<std::string> notes_;
  std::vector<std::pair<std::uint32_t, std::string>> others_;
};

std::int32_t points(double nearness) {
  return static_cast<std::int32_t>(std::lround(200 * nearness)) + TOPOLET_SCORE_MIN;
}

/// Points by nearness. Of equals the best keep them, the others have fewer by what they fall short of these, but never
/// as few as the next worse ones.
std::vector<std::int32_t> scores_of(const std::vector<Standing>& standings) {
  std::map<std::int32_t, std::int32_t> least_shortfalls;  // by points
  for (const Standing& standing : standings) {
    const auto level = least_shortfalls.try_emplace(points(standing.nearness), standing.shortfall()).first;
    level->second = std::min(level->second, standing.shortfall());
  }
  std::vector<std::int32_t> scores;
  for (const Standing& standing : standings) {
    const auto level = least_shortfalls.find(points(standing.nearness));
    const std::int32_t floor = level == least_shortfalls.begin() ? TOPOLET_SCORE_MIN : std::prev(level)->first + 1;
    scores.push_back(std::max(level->first - (standing.shortfall() - level->second), floor));
  }
  return scores;
}

/// CPUs that are asked for already, by shared containers, in thousandths.
std::int64_t shared_demand(const topolet_request& request, const Nodes& nodes) {
  std::int64_t sum = 0;
  for (const std::uint32_t node : nodes) {
    if (node >= request.ledger->node_demand_count) continue;
    const topolet_node_demand& demand = sdk::node_demands(*request.ledger)[node];
    sum += std::max<std::int64_t>(0, demand.cpu_request_milli - std::int64_t{1000} * demand.exclusive_cpus);
  }
  return sum;
}

bool has_room(const topolet_request& request, const topolet_candidate& candidate, const Nodes& nodes) {
  const auto free = static_cast<std::int64_t>(sdk::size_of(candidate.free));
  if (request.exclusive != 0) return free >= request.exclusive_cpus;
  const topolet_demand* const demand = request.workload->demand;
  const std::int64_t asked = demand == nullptr ? 0 : demand->cpu_request_milli;
  return free > 0 && shared_demand(request, nodes) + asked <= 1000 * free;
}

/// Nodes of accelerators, by position; those of devices near to every node don't count.
std::set<std::uint32_t> nodes_with_accelerators(const topolet_topology& topology, const CpuNodes& nodes) {
  std::set<std::uint32_t> found;
  const auto add = [&](const Spot& spot) {
    if (!is_accelerator(topology, spot)) return;
    const Nodes homes = homes_of(topology, spot);
    if (homes.size() < nodes.positions().size()) found.insert(homes.begin(), homes.end());
  };
  for (std::uint32_t i = 0; i < topology.pci_device_count; ++i) add({.pci_device = i});
  for (std::uint32_t i = 0; i < topology.os_device_count; ++i) {
    if (sdk::os_devices(topology)[i].pci_device == TOPOLET_NONE) add({.os_device = i});
  }
  return found;
}

}  // namespace

std::vector<Verdict> judge(const topolet_request& request, const Sought& sought, Affinity affinity) {
  Bench bench(request, sought);
  if (!bench.has_devices()) {
    const std::string notes = bench.notes();
    return {request.candidate_count, Verdict{Verdict::Kind::kAbstain, 0, notes.empty() ? notes : notes.substr(2)}};
  }
  bench.compare_nodes();
  std::vector<Nodes> usable;
  std::vector<Standing> standings;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    usable.push_back(bench.usable(candidate));
    standings.push_back(bench.standing(usable.back()));
  }
  const std::vector<std::int32_t> scores = scores_of(standings);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < standings.size(); ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    std::string reason = bench.reason(candidate, usable[i], standings[i]);
    const bool misses = affinity == Affinity::kRequire && bench.misses_one(usable[i]);
    if (misses) reason = "affinity require: " + reason;
    verdicts.push_back({misses ? Verdict::Kind::kReject : Verdict::Kind::kScore, misses ? 0 : scores[i], reason});
  }
  return verdicts;
}

std::vector<Verdict> judge_keeping_free(const topolet_request& request) {
  // More than what a node more costs, less than what too little memory does.
  constexpr std::int32_t kPoints = 15;
  const CpuNodes nodes(*request.topology);
  const std::set<std::uint32_t> kept = nodes_with_accelerators(*request.topology, nodes);
  if (kept.empty() || kept.size() == nodes.positions().size()) return {};

  sdk::Set kept_set;
  for (const std::uint32_t node : kept) kept_set.insert(nodes.os_index(node));
  std::vector<Verdict> verdicts;
  bool is_room_elsewhere = false;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const Nodes usable = nodes.usable(candidate);
    const auto inside = static_cast<std::int32_t>(
        std::count_if(usable.begin(), usable.end(), [&kept](std::uint32_t node) { return kept.contains(node); }));
    const std::string where = nodes_text(candidate.nodes);
    if (inside > 0) {
      verdicts.push_back({Verdict::Kind::kScore, -kPoints * inside / static_cast<std::int32_t>(usable.size()),
                          where + ": GPUs of " + nodes_text(kept_set) + " are kept free"});
    } else if (has_room(request, candidate, usable)) {
      is_room_elsewhere = true;
      verdicts.push_back({Verdict::Kind::kScore, kPoints, where + ": room, and no GPUs"});
    } else {
      verdicts.push_back({Verdict::Kind::kAbstain, 0, where + ": no GPUs, but no room either"});
    }
  }
  if (is_room_elsewhere) return verdicts;
  return {request.candidate_count,
          Verdict{Verdict::Kind::kAbstain, 0, "no room away from the GPUs of " + nodes_text(kept_set)}};
}

}  // namespace topolet::gpu
