#include "cluster/extender/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "cluster/extender/choose_alike.hpp"
#include "cluster/extender/node_room.hpp"

namespace topolet::extender {
namespace {

/// Sets of zones that are looked at one by one; where there are more, sets are grown from each zone.
constexpr std::size_t kMostSets = 2000;
/// Steps in the search for a zone for each of several containers.
constexpr int kMostSteps = 200;

using Positions = ZonePositions;

std::size_t sets_of(std::size_t size, std::size_t count) {
  std::size_t sets = 1;
  for (std::size_t i = 0; i < size; ++i) {
    sets = sets * (count - i) / (i + 1);
    if (sets > kMostSets) return sets;
  }
  return sets;
}

/// The zones of one node while containers of a pod are placed there.
class ZoneChooser {
 public:
  ZoneChooser(const FreeZones& zones, const Demand& demand)
      : node_(zones.node),
        demand_(demand),
        left_(zones.free),
        spoken_for_(zones.has_promises),
        lasting_(zones.has_promises),
        taken_(zones.free.size()) {}

  Result<Choice> choose() {
    if (node_.is_pod_scope) {
      if (const Status placed = place_as_one(); !placed) return placed.error();
    } else if (!place_together(running()) && !place_each_in_one(running())) {
      for (const ContainerDemand* container : largest_first(running())) {
        const auto zones = find_zones(container->asks, one_only());
        if (!zones) return no_place(*container);
        take(*container, *zones);
      }
    }
    for (const ContainerDemand& container : demand_.containers) {
      if (container.kind != ContainerDemand::Kind::kInit || node_.is_pod_scope) continue;
      if (!place_before(container)) return no_place(container);
    }
    return finish();
  }

 private:
  using Containers = boost::container::small_vector<const ContainerDemand*, 8>;

  bool one_only() const { return must_be_one(node_, demand_); }

  Containers running() const {
    Containers all;
    for (const ContainerDemand& container : demand_.containers) {
      if (container.kind != ContainerDemand::Kind::kInit) all.push_back(&container);
    }
    return all;
  }
  static Containers largest_first(Containers containers) {
    std::stable_sort(containers.begin(), containers.end(), [](const ContainerDemand* a, const ContainerDemand* b) {
      return a->asks.get(kCpu) > b->asks.get(kCpu);
    });
    return containers;
  }

  bool fits(const Amounts& asks, const Positions& zones, const std::vector<Amounts>& room) const {
    return std::all_of(asks.asks().begin(), asks.asks().end(), [&](const Ask& ask) {
      std::int64_t sum = 0;
      for (const std::size_t zone : zones) sum += std::max<std::int64_t>(0, room[zone].get(ask.resource));
      return sum >= ask.amount || !node_.publishes(ask.resource);
    });
  }

  std::int64_t preference(const Amounts& asks, const Positions& zones) const {
    Left left;
    for (const std::size_t zone : zones) left.add_zone(left_[zone], node_.zones[zone].allocatable);
    left.subtract(asks);
    return preference_of(left, demand_.strategy);
  }

  std::int64_t effective(const Positions& zones) const {
    std::int64_t can = 0;
    std::int64_t all = 0;
    for (const std::size_t zone : zones) {
      all += node_.zones[zone].allocatable.get(kCpu);
      can += usable_cpu(node_.zones[zone]);
    }
    return all > 0 ? can * kPermille / all : kPermille;
  }

  bool fits_one(const Amounts& asks, std::size_t zone, const std::vector<Amounts>& room) const {
    return std::all_of(asks.asks().begin(), asks.asks().end(), [&](const Ask& ask) {
      return std::max<std::int64_t>(0, room[zone].get(ask.resource)) >= ask.amount || !node_.publishes(ask.resource);
    });
  }

  /// One zone each, the best first.
  Positions fitting_zones(const Amounts& asks) const {
    struct Candidate {
      std::int64_t preference = 0;
      std::int64_t effective = 0;
      std::size_t zone = 0;
    };
    boost::container::small_vector<Candidate, 8> candidates;
    for (std::size_t zone = 0; zone < node_.zones.size(); ++zone) {
      if (!fits_one(asks, zone, left_)) continue;
      const Zone& here = node_.zones[zone];
      Left left;
      left.add_zone(left_[zone], here.allocatable);
      left.subtract(asks);
      candidates.push_back({preference_of(left, demand_.strategy), share_of_cpu(here), zone});
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(b.preference, b.effective, a.zone) < std::tuple(a.preference, a.effective, b.zone);
    });
    Positions fitting;
    for (const Candidate& candidate : candidates) fitting.push_back(candidate.zone);
    return fitting;
  }

  std::int64_t total_distance(const Positions& zones) const {
    std::int64_t sum = 0;
    for (const std::size_t from : zones) {
      for (const std::size_t to : zones) sum += node_.distance(from, to);
    }
    return sum;
  }

  /// Nearest together, then by strategy, then what comes first.
  bool is_better(const Amounts& asks, const Positions& a, const Positions& b) const {
    if (b.empty()) return true;
    if (a.size() != b.size()) return a.size() < b.size();
    const auto key = [&](const Positions& zones) { return std::pair(-total_distance(zones), preference(asks, zones)); };
    return key(a) > key(b);
  }

  /// All sets of a size.
  Positions best_of_size(const Amounts& asks, std::size_t size, const std::vector<Amounts>& room) const {
    Positions best;
    Positions zones(size);
    std::iota(zones.begin(), zones.end(), 0);
    const std::size_t count = node_.zones.size();
    while (true) {
      if (fits(asks, zones, room) && is_better(asks, zones, best)) best = zones;
      std::size_t moving = size;
      while (moving > 0 && zones[moving - 1] == count - size + moving - 1) --moving;
      if (moving == 0) return best;
      ++zones[moving - 1];
      for (std::size_t i = moving; i < size; ++i) zones[i] = zones[i - 1] + 1;
    }
  }

  /// From each zone, the nearest ones, until it is enough.
  Positions best_grown(const Amounts& asks, const std::vector<Amounts>& room) const {
    Positions best;
    for (std::size_t seed = 0; seed < node_.zones.size(); ++seed) {
      Positions others(node_.zones.size());
      std::iota(others.begin(), others.end(), 0);
      std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t zone) {
          return std::pair(zone == seed ? 0 : node_.distance(seed, zone), -room[zone].get(kCpu));
        };
        return key(a) < key(b);
      });
      Positions zones;
      for (const std::size_t zone : others) {
        if (room[zone].get(kCpu) <= 0 && asks.get(kCpu) > 0) continue;
        zones.push_back(zone);
        if (fits(asks, zones, room)) break;
      }
      if (!fits(asks, zones, room)) return {};
      std::sort(zones.begin(), zones.end());
      if (is_better(asks, zones, best)) best = zones;
    }
    return best;
  }

  /// Returns as few zones as possible; empty if not even all are enough.
  Positions fewest_zones(const Amounts& asks, const std::vector<Amounts>& room) const {
    const std::size_t count = node_.zones.size();
    boost::container::small_vector<std::int64_t, 32> largest;
    for (const Amounts& zone : room) largest.push_back(std::max<std::int64_t>(0, zone.get(kCpu)));
    std::sort(largest.begin(), largest.end(), std::greater<>());
    std::int64_t most = 0;
    for (std::size_t size = 1; size <= count; ++size) {
      most += largest[size - 1];
      if (most < asks.get(kCpu)) continue;
      if (sets_of(size, count) > kMostSets) return best_grown(asks, room);
      if (Positions zones = best_of_size(asks, size, room); !zones.empty()) return zones;
    }
    return {};
  }

  /// A container on several zones may take all it asks for from one of them, before those come that are promised
  /// something there: where that would take from them, it has no room.
  std::vector<Amounts> room_for_parts(const Amounts& asks, std::vector<Amounts> room,
                                      const std::vector<bool>& spoken_for) const {
    for (std::size_t zone = 0; zone < room.size(); ++zone) {
      if (spoken_for[zone] && !fits_one(asks, zone, room)) room[zone] = {};
    }
    return room;
  }

  std::optional<Positions> find_zones(const Amounts& asks, bool one) const {
    if (const Positions fitting = fitting_zones(asks); !fitting.empty()) return Positions{fitting.front()};
    if (one) return std::nullopt;
    Positions zones = fewest_zones(asks, room_for_parts(asks, left_, spoken_for_));
    if (zones.empty()) return std::nullopt;
    // "restricted" admits what could not be had on fewer zones of the empty machine.
    if (node_.policy == NodePolicy::kRestricted) {
      std::vector<Amounts> whole;
      for (const Zone& zone : node_.zones) whole.push_back(zone.allocatable);
      if (fewest_zones(asks, whole).size() < zones.size()) return std::nullopt;
    }
    return zones;
  }

  Amounts part(const Amounts& asks, std::size_t zone, const Positions& zones) const {
    if (zones.size() == 1) return asks;
    Amounts part;
    for (const Ask& ask : asks.asks())
      part.set(ask.resource, std::min(ask.amount, node_.zones[zone].allocatable.get(ask.resource)));
    return part;
  }

  void take(const ContainerDemand& container, const Positions& zones) {
    for (const std::size_t zone : zones) {
      const Amounts taken = part(container.asks, zone, zones);
      taken_[zone].add(taken);
      spoken_for_[zone] = true;
      // Main containers are not there yet while init ones run.
      if (container.kind != ContainerDemand::Kind::kMain) lasting_[zone] = true;
      for (const Ask& ask : taken.asks()) left_[zone].add(ask.resource, -ask.amount);
      if (container.kind == ContainerDemand::Kind::kMain) reusable_.resize(node_.zones.size());
      if (container.kind == ContainerDemand::Kind::kMain) reusable_[zone].add(taken);
    }
    placed_.push_back({container.name, zones});
  }

  /// All containers on one zone, where one has room for them: one that also has room for those that share CPUs, if
  /// there is one.
  bool place_together(const Containers& containers) {
    Amounts all;
    for (const ContainerDemand* container : containers) all.add(container->asks);
    Amounts with_shared = all;
    with_shared.add(kCpu, demand_.shared_milli);
    Positions zones = fitting_zones(with_shared);
    if (zones.empty()) zones = fitting_zones(all);
    if (containers.empty() || zones.empty()) return false;
    for (const ContainerDemand* container : largest_first(containers)) take(*container, {zones.front()});
    return true;
  }

  /// Depth first: a container that leaves no room for the next one gets its next best zone.
  bool place_each_in_one(const Containers& containers) {
    const Containers order = largest_first(containers);
    int steps = 0;
    Positions zones(order.size());
    if (!search(order, 0, zones, steps)) return false;
    for (std::size_t i = 0; i < order.size(); ++i) take(*order[i], {zones[i]});
    return true;
  }
  bool search(const Containers& order, std::size_t next, Positions& zones, int& steps) {
    if (next == order.size()) return true;
    if (++steps > kMostSteps) return false;
    const Amounts& asks = order[next]->asks;
    // Equal containers are interchangeable, so only one order of their zones is tried.
    const bool is_like_last = next > 0 && order[next - 1]->asks == asks;
    for (const std::size_t zone : fitting_zones(asks)) {
      if (is_like_last && zone < zones[next - 1]) continue;
      for (const Ask& ask : asks.asks()) left_[zone].add(ask.resource, -ask.amount);
      zones[next] = zone;
      const bool found = search(order, next + 1, zones, steps);
      for (const Ask& ask : asks.asks()) left_[zone].add(ask.resource, ask.amount);
      if (found) return true;
    }
    return false;
  }

  /// All containers on the same zones, with room for what runs at one time.
  Status place_as_one() {
    ContainerDemand all;
    Amounts sidecars;
    Amounts peak;
    for (const ContainerDemand& container : demand_.containers) {
      if (container.kind == ContainerDemand::Kind::kInit) {
        Amounts meanwhile = sidecars;
        meanwhile.add(container.asks);
        peak.raise_to(meanwhile);
        continue;
      }
      all.asks.add(container.asks);
      if (container.kind == ContainerDemand::Kind::kSidecar) sidecars.add(container.asks);
    }
    all.asks.raise_to(peak);
    const auto zones = find_zones(all.asks, one_only());
    if (!zones) return no_place(all);
    take(all, *zones);
    placed_.clear();
    for (const ContainerDemand& container : demand_.containers) placed_.push_back({container.name, *zones});
    return {};
  }

  /// An init container has ended before a main one begins, so it may have what that one will have.
  bool place_before(const ContainerDemand& container) {
    reusable_.resize(node_.zones.size());
    const auto room_with_reusable = [&] {
      std::vector<Amounts> room = left_;
      for (std::size_t zone = 0; zone < room.size(); ++zone) room[zone].add(reusable_[zone]);
      return room;
    }();
    Positions best;
    std::int64_t least = 0;
    for (std::size_t zone = 0; zone < node_.zones.size(); ++zone) {
      if (!fits_one(container.asks, zone, room_with_reusable)) continue;
      const std::int64_t more = std::max<std::int64_t>(0, container.asks.get(kCpu) - reusable_[zone].get(kCpu));
      if (!best.empty() && more >= least) continue;
      best = {zone};
      least = more;
    }
    if (best.empty() && !one_only())
      best = fewest_zones(container.asks, room_for_parts(container.asks, room_with_reusable, lasting_));
    if (best.empty()) return false;
    for (const std::size_t zone : best) {
      for (const Ask& ask : container.asks.asks()) {
        const std::int64_t amount = part(container.asks, zone, best).get(ask.resource);
        const std::int64_t more = std::max<std::int64_t>(0, amount - reusable_[zone].get(ask.resource));
        taken_[zone].add(ask.resource, more);
        left_[zone].add(ask.resource, -more);
        reusable_[zone].add(ask.resource, more);
      }
    }
    placed_.push_back({container.name, best});
    return true;
  }

  Error no_place(const ContainerDemand& container) const { return no_place_for(node_, demand_, left_, container.asks); }

  Choice finish() {
    Choice choice;
    choice.taken = std::move(taken_);
    std::vector<bool> is_used(node_.zones.size(), false);
    for (const ContainerDemand& container : demand_.containers) {
      const auto placed = std::find_if(placed_.begin(), placed_.end(),
                                       [&](const ContainerZones& zones) { return zones.container == container.name; });
      choice.containers.push_back(*placed);
      choice.fit.most_zones = std::max(choice.fit.most_zones, placed->zones.size());
      for (const std::size_t zone : placed->zones) is_used[zone] = true;
    }
    Positions used;
    for (std::size_t zone = 0; zone < is_used.size(); ++zone) {
      if (is_used[zone]) used.push_back(zone);
    }
    choice.fit.preference = preference({}, used);
    choice.fit.effective = effective(used);
    return choice;
  }

  const NodeZones& node_;
  const Demand& demand_;
  std::vector<Amounts> left_;
  std::vector<bool> spoken_for_;  ///< zones where others, or other containers, are promised something
  std::vector<bool> lasting_;     ///< those of them that are so while init containers run
  std::vector<Amounts> taken_;
  std::vector<Amounts> reusable_;  ///< what main containers have of it, by zone
  std::vector<ContainerZones> placed_;
};

bool fits_empty_node(const NodeZones& node, const Demand& demand) {
  std::vector<Amounts> whole;
  for (const Zone& zone : node.zones) whole.push_back(zone.allocatable);
  const std::vector<bool> none(node.zones.size(), false);
  return ZoneChooser({node, whole, {}, none, true, false}, demand).choose().has_value();
}

}  // namespace

Result<Choice> choose_among_alike(const FreeZones& zones, const Demand& demand) {
  if (const Status usable = check_usable(zones); !usable) return usable.error();
  Result<Choice> choice = ZoneChooser(zones, demand).choose();
  if (choice || demand.containers.size() == 1) return choice;
  return Error{choice.error().code,
               fmt::format("{}: {}", choice.error().message, fits_empty_node(zones.node, demand) ? kNotNow : kNever)};
}

std::vector<Amounts> taken_by(const NodeZones& node, const Amounts& asks,
                              const std::vector<std::uint32_t>& os_indices) {
  std::vector<Amounts> taken(node.zones.size());
  for (std::size_t zone = 0; zone < node.zones.size(); ++zone) {
    if (std::find(os_indices.begin(), os_indices.end(), node.zones[zone].os_index) == os_indices.end()) continue;
    for (const Ask& ask : asks.asks())
      taken[zone].set(ask.resource, std::min(ask.amount, node.zones[zone].allocatable.get(ask.resource)));
  }
  return taken;
}

}  // namespace topolet::extender
