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
      measure(one);
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
      const std::uint32_t distance = distance_to(i, reached);
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
      standing.in_package = standing.in_package && is_in_package(i, reached);
    }
    standing.local = local.size();
    standing.is_cut = reached.size() < nodes.size();
    const auto idle = std::count_if(nodes.begin(), nodes.end(), [&](std::uint32_t node) {
      return std::none_of(local.begin(), local.end(), [&](std::size_t i) { return way(i, node).is_home; });
    });
    standing.spread = nodes.empty() ? 1 : static_cast<double>(idle) / static_cast<double>(nodes.size());
    return standing;
  }

  /// However few CPUs there are.
  bool misses_one(const Nodes& nodes) const {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (distance_to(i, nodes) != 0) return true;
    }
    return false;
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

  struct Way {
    std::uint32_t distance = kUnknownDistance;
    bool in_package = false;
    bool is_home = false;
  };

  void measure(const Placed& device) {
    for (std::uint32_t node = 0; node < topology_.node_count; ++node) {
      Way way;
      for (const std::uint32_t home : device.homes) {
        way.distance = std::min(way.distance, std::max(nodes_.distance(node, home), 1U));
        way.in_package = way.in_package || nodes_.share_a_package(node, home);
        way.is_home = way.is_home || node == home;
      }
      ways_.push_back(way);
    }
  }

  const Way& way(std::size_t device, std::uint32_t node) const { return ways_[device * topology_.node_count + node]; }

  /// As many of the nodes as the container has CPUs for: each time the one that brings the devices nearest.
  Nodes within_reach(const Nodes& nodes) const {
    if (request_.exclusive == 0 || nodes.size() <= request_.exclusive_cpus) return nodes;
    std::vector<double> reached_nearness(devices_.size(), 0);
    Nodes reached;
    Nodes rest = nodes;
    while (reached.size() < request_.exclusive_cpus) {
      auto best = rest.begin();
      double most = -1;
      for (auto node = rest.begin(); node != rest.end(); ++node) {
        double sum = 0;
        for (std::size_t i = 0; i < devices_.size(); ++i) sum += std::max(reached_nearness[i], nearness_to(i, *node));
        if (sum > most) best = node, most = sum;
      }
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        reached_nearness[i] = std::max(reached_nearness[i], nearness_to(i, *best));
      }
      reached.push_back(*best);
      rest.erase(best);
    }
    return reached;
  }

  double nearness_to(std::size_t device, std::uint32_t node) const {
    return way(device, node).is_home ? 1 : nearness_at(way(device, node).distance);
  }

  /// 0: local.
  std::uint32_t distance_to(std::size_t device, const Nodes& nodes) const {
    std::uint32_t least = kUnknownDistance;
    for (const std::uint32_t node : nodes) {
      if (way(device, node).is_home) return 0;
      least = std::min(least, way(device, node).distance);
    }
    return least;
  }

  /// What is remote at 20 is worth half of what is local, at 40 a quarter; never as much.
  static double nearness_at(std::uint32_t distance) {
    if (distance == 0) return 1;
    return distance == kUnknownDistance ? 0 : std::min(0.9, 10.0 / distance);
  }

  bool is_in_package(std::size_t device, const Nodes& nodes) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t node) { return way(device, node).in_package; });
  }

  /// Homes of devices that are in the candidate, but full.
  sdk::Set without_free_cpus(const topolet_candidate& candidate, const Nodes& usable) const {
    sdk::Set full;
    if (usable.size() == sdk::size_of(candidate.nodes)) return full;
    for (const std::uint32_t node : nodes_.positions()) {
      const bool is_in = topolet_set_has(candidate.nodes, nodes_.os_index(node)) != 0;
      if (is_in && !is_one_of(usable, node) && is_home_of_any(node)) full.insert(nodes_.os_index(node));
    }
    return full;
  }

  static bool is_one_of(const Nodes& nodes, std::uint32_t node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  }

  bool is_home_of_any(std::uint32_t node) const {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (way(i, node).is_home) return true;
    }
    return false;
  }

  const topolet_request& request_;
  const topolet_topology& topology_;
  const CpuNodes nodes_;
  std::vector<Placed> devices_;
  std::vector<Way> ways_;         ///< of each device to each node
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

}  // namespace topolet::gpu
