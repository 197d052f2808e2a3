#include <algorithm>
#include <optional>
#include <utility>

#include "cluster/extender/choose.hpp"
#include "cluster/extender/choose_alike.hpp"
#include "cluster/extender/node_room.hpp"

namespace topolet::extender {
namespace {

/// All containers on one zone, else on one each, the largest first and each on the best one that is left for it, as
/// ZoneChooser tries it first. Only what CPUs alone rank: nothing of a zone is looked at that has too few.
class QuickFit {
 public:
  QuickFit(const FreeZones& zones, const Demand& demand)
      : zones_(zones),
        strategy_(demand.strategy),
        shared_milli_(demand.shared_milli),
        left_(zones.free_cpu.begin(), zones.free_cpu.end()) {
    for (const ContainerDemand& container : demand.containers) order_.push_back(&container);
    if (order_.size() < 2) return;
    std::stable_sort(order_.begin(), order_.end(), [](const ContainerDemand* a, const ContainerDemand* b) {
      return a->asks.get(kCpu) > b->asks.get(kCpu);
    });
  }

  static bool is_for(const Demand& demand) {
    return demand.strategy != ZoneStrategy::kBalanced &&
           std::all_of(demand.containers.begin(), demand.containers.end(),
                       [](const ContainerDemand& container) { return container.kind != ContainerDemand::Kind::kInit; });
  }

  std::optional<Fit> fit() {
    if (fit_together()) return total();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const auto zone = best_zone(order_[i]->asks);
      if (!zone) return std::nullopt;
      left_[*zone] -= order_[i]->asks.get(kCpu);
      used_.push_back(*zone);
    }
    return total();
  }

 private:
  bool fit_together() {
    Amounts all;
    for (const ContainerDemand* container : order_) all.add(container->asks);
    Amounts with_shared = all;
    with_shared.add(kCpu, shared_milli_);
    auto zone = best_zone(with_shared);
    if (!zone) zone = best_zone(all);
    if (!zone) return false;
    left_[*zone] -= all.get(kCpu);
    used_.assign(1, *zone);
    return true;
  }

  std::optional<std::size_t> best_zone(const Amounts& asks) const {
    const std::int64_t cpu = asks.get(kCpu);
    std::optional<std::size_t> best;
    std::pair<std::int64_t, std::int64_t> best_key;
    for (std::size_t zone = 0; zone < left_.size(); ++zone) {
      if (left_[zone] < cpu) continue;
      const std::int64_t preference = preference_of({.cpu = left_[zone] - cpu}, strategy_);
      if ((best && preference < best_key.first) || !fits(asks, zone)) continue;
      const std::pair key(preference, share_of_cpu(zones_.node.zones[zone]));
      if (best && key <= best_key) continue;
      best = zone;
      best_key = key;
    }
    return best;
  }

  /// Besides CPUs, and with what others of the pod have there.
  bool fits(const Amounts& asks, std::size_t zone) const {
    return std::all_of(asks.asks().begin(), asks.asks().end(), [&](const Ask& ask) {
      if (ask.resource == kCpu) return true;
      std::int64_t left = zones_.free[zone].get(ask.resource);
      for (std::size_t i = 0; i < used_.size(); ++i) {
        if (used_[i] == zone) left -= order_[i]->asks.get(ask.resource);
      }
      // Resources that no zone publishes do not depend on zones.
      return std::max<std::int64_t>(0, left) >= ask.amount || !zones_.node.publishes(ask.resource);
    });
  }

  Fit total() {
    std::sort(used_.begin(), used_.end());
    used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
    Left left;
    std::int64_t can = 0;
    std::int64_t all = 0;
    for (const std::size_t zone : used_) {
      left.cpu += left_[zone];
      can += usable_cpu(zones_.node.zones[zone]);
      all += zones_.node.zones[zone].allocatable.get(kCpu);
    }
    return Fit{1, preference_of(left, strategy_), all > 0 ? can * kPermille / all : kPermille};
  }

  const FreeZones& zones_;
  const ZoneStrategy strategy_;
  const std::int64_t shared_milli_;
  boost::container::small_vector<std::int64_t, 8> left_;
  boost::container::small_vector<const ContainerDemand*, 8> order_;
  ZonePositions used_;
};

/// Returns the result if it can be told without trying all zones; nothing if it cannot.
std::optional<Result<Fit>> look_quickly(const FreeZones& zones, const Demand& demand) {
  if (const Status usable = check_usable(zones); !usable) return usable.error();
  // In pod scope all containers are as one, which is the same for one.
  if (QuickFit::is_for(demand) && (!zones.node.is_pod_scope || demand.containers.size() == 1)) {
    if (const auto fit = QuickFit(zones, demand).fit()) return *fit;
  }
  if (demand.containers.size() != 1) return std::nullopt;
  const std::int64_t cpu = demand.containers.front().asks.get(kCpu);
  const bool one = must_be_one(zones.node, demand);
  std::int64_t most = 0;
  for (const std::int64_t zone : zones.free_cpu) {
    const std::int64_t free = std::max<std::int64_t>(0, zone);
    most = one ? std::max(most, free) : most + free;
  }
  // Others than CPUs may be what is missing.
  if (most < cpu) return no_place_for(zones.node, demand, zones.free, demand.containers.front().asks);
  return std::nullopt;
}

/// Returns true if several zones certainly have room for the only container: those that have CPUs and no promises have
/// enough together.
bool has_room_on_several(const FreeZones& zones, const Demand& demand) {
  if (demand.containers.size() != 1 || must_be_one(zones.node, demand)) return false;
  const ContainerDemand& container = demand.containers.front();
  if (container.kind == ContainerDemand::Kind::kInit || zones.node.policy == NodePolicy::kRestricted) return false;
  return std::all_of(container.asks.asks().begin(), container.asks.asks().end(), [&](const Ask& ask) {
    std::int64_t sum = 0;
    for (std::size_t zone = 0; zone < zones.free.size(); ++zone) {
      const bool counts = zones.free_cpu[zone] > 0 && !zones.has_promises[zone];
      if (counts) sum += std::max<std::int64_t>(0, zones.free[zone].get(ask.resource));
    }
    return sum >= ask.amount || !zones.node.publishes(ask.resource);
  });
}

}  // namespace

Result<Fit> fit_among_alike(const FreeZones& zones, const Demand& demand) {
  if (auto known = look_quickly(zones, demand)) return *std::move(known);
  const Result<Choice> choice = choose_among_alike(zones, demand);
  if (!choice) return choice.error();
  return choice->fit;
}

Status check_among_alike(const FreeZones& zones, const Demand& demand) {
  if (const auto known = look_quickly(zones, demand)) return *known ? Status() : known->error();
  if (has_room_on_several(zones, demand)) return {};
  const Result<Choice> choice = choose_among_alike(zones, demand);
  return choice ? Status() : choice.error();
}

}  // namespace topolet::extender
