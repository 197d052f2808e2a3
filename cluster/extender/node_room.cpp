#include "cluster/extender/node_room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

namespace topolet::extender {
namespace {

std::string cpus_text(std::int64_t milli) {
  return fmt::format("{} free CPU{}", milli / kPermille, milli == kPermille ? "" : "s");
}

struct Best {
  std::int64_t largest = 0;
  std::int64_t sum = 0;
};

/// Returns the largest number of CPUs in one zone, and the sum of all.
Best best_of(const std::vector<Amounts>& zones) {
  Best best;
  for (const Amounts& zone : zones) {
    const std::int64_t cpu = std::max<std::int64_t>(0, zone.get(kCpu));
    best.largest = std::max(best.largest, cpu);
    best.sum += cpu;
  }
  return best;
}

std::int64_t cpus_of(bool one, const Best& best) { return one ? best.largest : best.sum; }

std::vector<Amounts> allocatable_of(const NodeZones& node) {
  std::vector<Amounts> all;
  for (const Zone& zone : node.zones) all.push_back(zone.allocatable);
  return all;
}

/// Returns true if empty zones would satisfy the request, one of them or all together.
bool is_there_at_all(const NodeZones& node, const Amounts& asks, bool one) {
  const auto has = [&](const Amounts& amounts) {
    return std::all_of(asks.asks().begin(), asks.asks().end(), [&](const Ask& ask) {
      return amounts.get(ask.resource) >= ask.amount || !node.publishes(ask.resource);
    });
  };
  const std::vector<Amounts> zones = allocatable_of(node);
  if (one) return std::any_of(zones.begin(), zones.end(), has);
  Amounts sum;
  for (const Amounts& zone : zones) sum.add(zone);
  return has(sum);
}

/// Says whether waiting can help.
std::string when_text(const NodeZones& node, const Amounts& asks, bool one) {
  if (is_there_at_all(node, asks, one)) return kNotNow;
  const std::int64_t all = cpus_of(one, best_of(allocatable_of(node)));
  if (all >= asks.get(kCpu)) return kNever;
  return fmt::format("never, as {} has {}", one ? "the largest" : "the empty node", all / kPermille);
}

Error refused(std::string why) { return {Code::kFailedPrecondition, std::move(why)}; }

}  // namespace

std::int64_t preference_of(const Left& left, ZoneStrategy strategy) {
  const std::int64_t cpu = std::max<std::int64_t>(0, left.cpu);
  const std::int64_t memory = std::max<std::int64_t>(0, left.memory_mib);
  if (strategy == ZoneStrategy::kPacked) return -cpu;
  if (strategy == ZoneStrategy::kSpread) return cpu;
  const std::int64_t cpu_share = left.all_cpu > 0 ? cpu * kPermille / left.all_cpu : 0;
  return left.all_memory_mib > 0 ? -std::abs(cpu_share - memory * kPermille / left.all_memory_mib) : -cpu_share;
}

std::int64_t usable_cpu(const Zone& zone) {
  const std::int64_t nominal = zone.allocatable.get(kCpu);
  return std::clamp<std::int64_t>(zone.effective_cpu_milli.value_or(nominal), 0, nominal);
}

std::int64_t share_of_cpu(const Zone& zone) {
  const std::int64_t nominal = zone.allocatable.get(kCpu);
  return nominal > 0 ? usable_cpu(zone) * kPermille / nominal : kPermille;
}

bool must_be_one(const NodeZones& node, const Demand& demand) {
  return demand.policy == ZonePolicy::kSingle || node.policy == NodePolicy::kSingleNumaNode;
}

Status check_usable(const FreeZones& zones) {
  if (!zones.has_cpus) return refused("publishes no NUMA zones with CPUs");
  if (zones.is_silent)
    return refused("its agent has not been heard of for a minute or longer, so its zones are not relied on");
  if (zones.is_stale) return refused("what was promised here before has not shown up, so its zones are not relied on");
  return {};
}

Error no_place_for(const NodeZones& node, const Demand& demand, const std::vector<Amounts>& left, const Amounts& asks) {
  const bool one = must_be_one(node, demand);
  const std::int64_t cpu = asks.get(kCpu);
  const Best free = best_of(left);
  // With several containers, it depends on all of them whether there is ever a place.
  const std::string when = demand.containers.size() == 1 ? ": " + when_text(node, asks, one) : "";
  if (cpus_of(one, free) < cpu) {
    const std::string text = one ? "no zone has {}, the best has {}{}" : "its zones have no {}, but {}{}";
    return refused(fmt::format(fmt::runtime(text), cpus_text(cpu), cpus_of(one, free) / kPermille, when));
  }
  if (!one && node.policy == NodePolicy::kRestricted)
    return refused(fmt::format("restricted: {} would be on more zones than on an empty node{}", cpus_text(cpu), when));
  return refused(fmt::format("no {} with {} and the memory and devices asked for{}", one ? "zone" : "zones",
                             cpus_text(cpu), when));
}

}  // namespace topolet::extender
