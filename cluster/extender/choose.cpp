#include "cluster/extender/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

namespace topolet::extender {
namespace {

constexpr std::int64_t kPermille = 1000;
/// Sets of zones that are looked at one by one; where there are more, sets are grown from each zone.
constexpr std::size_t kMostSets = 2000;
/// Steps in the search for a zone for each of several containers.
constexpr int kMostSteps = 2000;

using Positions = ZonePositions;

std::size_t sets_of(std::size_t size, std::size_t count) {
  std::size_t sets = 1;
  for (std::size_t i = 0; i < size; ++i) {
    sets = sets * (count - i) / (i + 1);
    if (sets > kMostSets) return sets;
  }
  return sets;
}

std::string cpus_text(std::int64_t milli) {
  return fmt::format("{} free CPU{}", milli / kPermille, milli == kPermille ? "" : "s");
}

/// The zones of one node while containers of a pod are placed there.
class ZoneChooser {
 public:
  ZoneChooser(const FreeZones& zones, const Demand& demand)
      : node_(zones.node),
        demand_(demand),
        is_stale_(zones.is_stale),
        left_(zones.free),
        spoken_for_(zones.has_promises),
        taken_(zones.free.size()) {}

  Result<Choice> choose() {
    if (const Status usable = is_usable(); !usable) return usable.error();
    if (node_.is_pod_scope) {
      if (const Status placed = place_as_one(); !placed) return placed.error();
    } else if (!place_each_in_one(running())) {
      for (const ContainerDemand* container : largest_first(running())) {
        const auto zones = find_zones(container->asks, must_be_one());
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
  using Containers = std::vector<const ContainerDemand*>;

  Status is_usable() const {
    if (node_.zones.empty() || !node_.publishes(kCpu)) return refused("publishes no NUMA zones with CPUs");
    if (is_stale_ && demand_.policy == ZonePolicy::kSingle)
      return refused("what was promised here before has not shown up, so its zones are not relied on");
    return {};
  }
  static Error refused(std::string why) { return {Code::kFailedPrecondition, std::move(why)}; }

  bool must_be_one() const {
    return demand_.policy == ZonePolicy::kSingle || node_.policy == NodePolicy::kSingleNumaNode;
  }

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

  /// What no zone publishes is none of the zones' business.
  bool counts(ResourceId resource) const { return node_.publishes(resource); }

  bool fits(const Amounts& asks, const Positions& zones, const std::vector<Amounts>& room) const {
    return std::all_of(asks.asks().begin(), asks.asks().end(), [&](const Ask& ask) {
      std::int64_t sum = 0;
      for (const std::size_t zone : zones) sum += std::max<std::int64_t>(0, room[zone].get(ask.resource));
      return sum >= ask.amount || !counts(ask.resource);
    });
  }

  /// More is better.
  std::int64_t preference(const Amounts& asks, const Positions& zones) const {
    std::int64_t left = 0;
    std::int64_t all = 0;
    std::int64_t left_memory = 0;
    std::int64_t all_memory = 0;
    for (const std::size_t zone : zones) {
      left += left_[zone].get(kCpu);
      all += node_.zones[zone].allocatable.get(kCpu);
      left_memory += left_[zone].get(kMemory) >> 20U;
      all_memory += node_.zones[zone].allocatable.get(kMemory) >> 20U;
    }
    left = std::max<std::int64_t>(0, left - asks.get(kCpu));
    left_memory = std::max<std::int64_t>(0, left_memory - (asks.get(kMemory) >> 20U));
    const std::int64_t cpu_share = all > 0 ? left * kPermille / all : 0;
    switch (demand_.strategy) {
      case ZoneStrategy::kPacked:
        return -left;
      case ZoneStrategy::kSpread:
        return left;
      case ZoneStrategy::kBalanced:
        return all_memory > 0 ? -std::abs(cpu_share - left_memory * kPermille / all_memory) : -cpu_share;
    }
    return 0;
  }

  std::int64_t effective(const Positions& zones) const {
    std::int64_t can = 0;
    std::int64_t all = 0;
    for (const std::size_t zone : zones) {
      const std::int64_t nominal = node_.zones[zone].allocatable.get(kCpu);
      all += nominal;
      can += std::clamp<std::int64_t>(node_.zones[zone].effective_cpu_milli.value_or(nominal), 0, nominal);
    }
    return all > 0 ? can * kPermille / all : kPermille;
  }

  /// One zone each, the best first.
  Positions fitting_zones(const Amounts& asks) const {
    Positions fitting;
    for (std::size_t zone = 0; zone < node_.zones.size(); ++zone) {
      if (fits(asks, {zone}, left_)) fitting.push_back(zone);
    }
    std::stable_sort(fitting.begin(), fitting.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t zone) { return std::pair(preference(asks, {zone}), effective({zone})); };
      return key(a) > key(b);
    });
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

  /// As few zones as can be; empty: not even all are enough.
  Positions fewest_zones(const Amounts& asks, const std::vector<Amounts>& room) const {
    const std::size_t count = node_.zones.size();
    for (std::size_t size = 1; size <= count; ++size) {
      if (sets_of(size, count) > kMostSets) return best_grown(asks, room);
      if (Positions zones = best_of_size(asks, size, room); !zones.empty()) return zones;
    }
    return {};
  }

  /// A container on several zones may take all it asks for from one of them, before those come that are promised
  /// something there: where that would take from them, it has no room.
  std::vector<Amounts> room_for_parts(const Amounts& asks, std::vector<Amounts> room) const {
    for (std::size_t zone = 0; zone < room.size(); ++zone) {
      if (spoken_for_[zone] && !fits(asks, {zone}, room)) room[zone] = {};
    }
    return room;
  }

  std::optional<Positions> find_zones(const Amounts& asks, bool one) const {
    if (const Positions fitting = fitting_zones(asks); !fitting.empty()) return Positions{fitting.front()};
    if (one) return std::nullopt;
    Positions zones = fewest_zones(asks, room_for_parts(asks, left_));
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
      for (const Ask& ask : taken.asks()) left_[zone].add(ask.resource, -ask.amount);
      if (container.kind == ContainerDemand::Kind::kMain) reusable_.resize(node_.zones.size());
      if (container.kind == ContainerDemand::Kind::kMain) reusable_[zone].add(taken);
    }
    placed_.push_back({container.name, zones});
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
    for (const std::size_t zone : fitting_zones(asks)) {
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
    const auto zones = find_zones(all.asks, must_be_one());
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
      if (!fits(container.asks, {zone}, room_with_reusable)) continue;
      const std::int64_t more = std::max<std::int64_t>(0, container.asks.get(kCpu) - reusable_[zone].get(kCpu));
      if (!best.empty() && more >= least) continue;
      best = {zone};
      least = more;
    }
    if (best.empty() && !must_be_one())
      best = fewest_zones(container.asks, room_for_parts(container.asks, room_with_reusable));
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

  Error no_place(const ContainerDemand& container) const {
    const std::int64_t cpu = container.asks.get(kCpu);
    const bool one = must_be_one();
    std::int64_t best = 0;
    std::int64_t sum = 0;
    for (std::size_t zone = 0; zone < node_.zones.size(); ++zone) {
      const std::int64_t free = std::max<std::int64_t>(0, left_[zone].get(kCpu));
      best = std::max(best, free);
      sum += free;
    }
    const std::int64_t most = one ? best : sum;
    if (most < cpu) {
      return refused(one ? fmt::format("no zone has {}, the best has {}", cpus_text(cpu), best / kPermille)
                         : fmt::format("its zones have no {}, but {}", cpus_text(cpu), sum / kPermille));
    }
    if (!one && node_.policy == NodePolicy::kRestricted)
      return refused(fmt::format("restricted: {} would be on more zones than on an empty node", cpus_text(cpu)));
    return refused(
        fmt::format("no {} with {} and the memory and devices asked for", one ? "zone" : "zones", cpus_text(cpu)));
  }

  Choice finish() {
    Choice choice;
    choice.taken = std::move(taken_);
    std::vector<bool> is_used(node_.zones.size(), false);
    for (const ContainerDemand& container : demand_.containers) {
      const auto placed = std::find_if(placed_.begin(), placed_.end(),
                                       [&](const ContainerZones& zones) { return zones.container == container.name; });
      choice.containers.push_back(*placed);
      choice.most_zones = std::max(choice.most_zones, placed->zones.size());
      for (const std::size_t zone : placed->zones) is_used[zone] = true;
    }
    Positions used;
    for (std::size_t zone = 0; zone < is_used.size(); ++zone) {
      if (is_used[zone]) used.push_back(zone);
    }
    choice.preference = preference({}, used);
    choice.effective = effective(used);
    return choice;
  }

  const NodeZones& node_;
  const Demand& demand_;
  const bool is_stale_;
  std::vector<Amounts> left_;
  std::vector<bool> spoken_for_;  ///< zones where others, or other containers, are promised something
  std::vector<Amounts> taken_;
  std::vector<Amounts> reusable_;  ///< what main containers have of it, by zone
  std::vector<ContainerZones> placed_;
};

}  // namespace

Result<Choice> choose_zones(const FreeZones& zones, const Demand& demand) {
  return ZoneChooser(zones, demand).choose();
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
