#include "plugins/numa/policy.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace topolet::numa {
namespace {

using sdk::Set;

// One node more outweighs any distance, any distance outweighs the strategy.
constexpr std::int32_t kBest = 100;
constexpr std::int32_t kNodeStep = 30;
constexpr std::int32_t kDistanceFirst = 11;
constexpr std::int32_t kDistanceSpan = 8;
constexpr std::int32_t kStrategyFirst = 1;
constexpr std::int32_t kStrategySpan = 9;

std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

/// A candidate in the numbers that matter here.
struct Place {
  bool is_node;
  std::size_t width;  ///< nodes it spans; CPUs that no node covers count as one more
  std::size_t cpus;
  std::size_t free;
  std::uint32_t distance;
  std::string name;
};

/// CPUs that no NUMA node covers.
Set cpus_without_node(const topolet_topology& topology) {
  Set cpus;
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (pu.node == TOPOLET_NONE) cpus.insert(pu.os_index);
  }
  return cpus;
}

Place place_of(const topolet_candidate& candidate, const Set& without_node) {
  const std::size_t nodes = sdk::size_of(candidate.nodes);
  const bool has_others = sdk::size_of_both(candidate.cpus, without_node.view()) > 0;
  std::string name = "the CPUs without a node";
  if (nodes > 0) name = (nodes == 1 ? "node " : "nodes ") + Set(candidate.nodes).to_string();
  if (nodes > 0 && has_others) name += " and the CPUs without one";
  return {nodes > 0,
          std::max<std::size_t>(1, nodes + (has_others ? 1 : 0)),
          sdk::size_of(candidate.cpus),
          sdk::size_of(candidate.free),
          candidate.distance,
          std::move(name)};
}

/// 0 for the best, then first…first+span in proportion to how far `value` is from it.
std::int32_t penalty(std::size_t value, std::size_t best, std::size_t worst, std::int32_t first, std::int32_t span) {
  if (value == best) return 0;
  const std::size_t range = worst > best ? worst - best : best - worst;
  const std::size_t far = value > best ? value - best : best - value;
  return first + static_cast<std::int32_t>(far * static_cast<std::size_t>(span) / range);
}

/// Lowest and highest of one number over the places that compete with each other.
struct Range {
  std::size_t low = SIZE_MAX;
  std::size_t high = 0;
  void include(std::size_t value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// What the places that could take the workload now are compared by.
struct Field {
  std::size_t narrowest = SIZE_MAX;        ///< width that could hold the demand on an empty machine
  std::map<std::size_t, Range> distances;  ///< by width
  std::map<std::pair<std::size_t, std::uint32_t>, Range> free;  ///< by width and distance

  Field(const std::vector<Place>& places, std::size_t wanted) {
    for (const Place& place : places) {
      if (place.cpus >= wanted) narrowest = std::min(narrowest, place.width);
      if (place.free < wanted) continue;
      distances[place.width].include(place.distance);
      free[{place.width, place.distance}].include(place.free);
    }
  }
};

Verdict judge(const Place& place, const Field& field, std::size_t wanted, Strategy strategy) {
  if (place.free < wanted) {
    const std::string has = place.is_node && place.width == 1 ? " has " : " have ";
    const std::string what = place.cpus < wanted
                                 ? "only " + counted(place.cpus, "CPU")
                                 : std::to_string(place.free) + " of " + counted(place.cpus, "CPU") + " free";
    return {true, 0, place.name + has + what + ", " + std::to_string(wanted) + " asked for"};
  }
  const Range& distances = field.distances.at(place.width);
  const Range& free = field.free.at({place.width, place.distance});
  const bool packed = strategy == Strategy::kPacked;
  const std::int32_t for_nodes =
      kNodeStep * static_cast<std::int32_t>(std::min<std::size_t>(place.width - field.narrowest, 7));
  const std::int32_t for_distance =
      penalty(place.distance, distances.low, distances.high, kDistanceFirst, kDistanceSpan);
  const std::int32_t for_strategy =
      penalty(place.free, packed ? free.low : free.high, packed ? free.high : free.low, kStrategyFirst, kStrategySpan);

  const char* const verb = place.width > 1 ? " together hold all " : place.is_node ? " holds all " : " hold all ";
  std::string reason = place.name + verb + counted(wanted, "CPU") + " (" + std::to_string(place.free) + " free)";
  if (for_nodes > 0) reason += "; " + counted(field.narrowest, "node") + " could";
  if (for_distance > 0) reason += "; others as wide are closer";
  if (for_strategy > 0) reason += packed ? "; a fuller one fits too" : "; an emptier one fits too";
  return {false, std::max(-kBest, kBest - for_nodes - for_distance - for_strategy), std::move(reason)};
}

/// A core as far as it can be used.
struct Core {
  std::vector<std::uint32_t> usable;
  bool whole = false;
  std::uint32_t l3 = TOPOLET_NONE;
};

/// The cores of the usable CPUs, by lowest CPU. A CPU whose core is unknown is a core of its own.
std::vector<Core> cores_of(const topolet_topology& topology, topolet_set usable) {
  std::vector<Core> cores;
  std::map<std::uint32_t, std::size_t> by_position;
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (topolet_set_has(usable, pu.os_index) == 0) continue;
    const bool known = pu.core < topology.core_count;
    const auto [found, fresh] =
        known ? by_position.try_emplace(pu.core, cores.size()) : std::pair(by_position.end(), true);
    if (fresh) cores.push_back({{}, false, pu.l3});
    Core& core = fresh ? cores.back() : cores[found->second];
    core.usable.push_back(pu.os_index);
    core.whole = !known || core.usable.size() == sdk::size_of(topology.cores[pu.core]);
  }
  return cores;
}

/// Whole cores, those of one L3 together: first an L3 that can hold the whole request, if there is one; lowest first.
std::vector<const Core*> whole_cores(const std::vector<Core>& cores, std::size_t wanted) {
  std::vector<std::pair<std::uint32_t, std::vector<const Core*>>> groups;
  for (const Core& core : cores) {
    if (!core.whole) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&core](const auto& g) { return g.first == core.l3; });
    if (group == groups.end()) group = groups.insert(groups.end(), {core.l3, {}});
    group->second.push_back(&core);
  }
  const auto threads = [](const auto& group) {
    std::size_t count = 0;
    for (const Core* core : group.second) count += core->usable.size();
    return count;
  };
  const auto holds_all = [&](const auto& group) { return threads(group) >= wanted; };
  const auto first = std::find_if(groups.begin(), groups.end(), holds_all);
  if (first != groups.end()) std::rotate(groups.begin(), first, first + 1);
  std::vector<const Core*> whole;
  for (const auto& group : groups) whole.insert(whole.end(), group.second.begin(), group.second.end());
  return whole;
}

/// Cores in part use, best place for `wanted` single threads first: one that can hold them all and is fullest, then
/// those with most room.
std::vector<const Core*> part_cores(const std::vector<Core>& cores, std::size_t wanted) {
  std::vector<const Core*> parts;
  for (const Core& core : cores) {
    if (!core.whole) parts.push_back(&core);
  }
  std::stable_sort(parts.begin(), parts.end(), [wanted](const Core* a, const Core* b) {
    const bool a_holds = a->usable.size() >= wanted;
    const bool b_holds = b->usable.size() >= wanted;
    if (a_holds != b_holds) return a_holds;
    return a_holds ? a->usable.size() < b->usable.size() : a->usable.size() > b->usable.size();
  });
  return parts;
}

void append(std::vector<std::uint32_t>& cpus, const Core& core) {
  cpus.insert(cpus.end(), core.usable.begin(), core.usable.end());
}

}  // namespace

std::vector<Verdict> Policy::score(const topolet_request& request) const {
  std::vector<Verdict> verdicts;
  const std::size_t wanted = request.exclusive_cpus;
  if (request.exclusive == 0 || wanted == 0) return verdicts;
  const Set without_node = cpus_without_node(*request.topology);
  std::vector<Place> places;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    places.push_back(place_of(candidate, without_node));
  }
  const Field field(places, wanted);
  verdicts.reserve(places.size());
  for (const Place& place : places) verdicts.push_back(judge(place, field, wanted, options_.strategy));
  return verdicts;
}

CpuOrder Policy::pick(const topolet_pick_request& request) const {
  const std::size_t wanted = request.request->exclusive_cpus;
  if (request.request->exclusive == 0 || wanted == 0) return {};
  const std::vector<Core> cores = cores_of(*request.request->topology, request.usable);

  std::vector<std::uint32_t> whole_taken;
  std::vector<const Core*> whole_left;
  std::size_t taken_cores = 0;
  for (const Core* core : whole_cores(cores, wanted)) {
    if (whole_taken.size() + core->usable.size() <= wanted) {
      append(whole_taken, *core);
      ++taken_cores;
    } else {
      whole_left.push_back(core);
    }
  }
  const std::size_t singles = wanted - whole_taken.size();
  std::vector<std::uint32_t> in_part_use;
  for (const Core* core : part_cores(cores, singles)) append(in_part_use, *core);

  // Cores in use that cannot give all single threads would only add to those that are shared: then one more is opened.
  const bool fill = singles > 0 && (in_part_use.size() >= singles || whole_left.empty());
  const auto filled =
      in_part_use.begin() + static_cast<std::ptrdiff_t>(fill ? std::min(singles, in_part_use.size()) : 0);
  CpuOrder order;
  order.cpus.assign(in_part_use.begin(), filled);
  order.cpus.insert(order.cpus.end(), whole_taken.begin(), whole_taken.end());
  for (const Core* core : whole_left) append(order.cpus, *core);
  order.cpus.insert(order.cpus.end(), filled, in_part_use.end());

  if (taken_cores > 0) order.reason = counted(taken_cores, "whole core");
  if (singles > 0) {
    order.reason += (order.reason.empty() ? "" : " and ") + counted(singles, "single thread") +
                    (fill ? " of cores in use" : " of a core that was free");
  }
  return order;
}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const {
  const std::vector<Verdict> verdicts = score(request);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (verdicts[i].reject) {
      scores.reject(i, verdicts[i].reason);
    } else {
      scores.score(i, verdicts[i].score, verdicts[i].reason);
    }
  }
}

void Policy::pick(const topolet_pick_request& request, sdk::Picks& picks) const {
  const CpuOrder order = pick(request);
  if (order.cpus.empty()) return;
  picks.order(order.cpus);
  picks.reason(order.reason);
}

}  // namespace topolet::numa
