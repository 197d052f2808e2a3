#include "cluster/extender/room.hpp"

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

Status check_usable(const FreeZones& zones, const Demand& demand) {
  if (!zones.has_cpus) return refused("publishes no NUMA zones with CPUs");
  if (zones.is_stale && demand.policy == ZonePolicy::kSingle)
    return refused("what was promised here before has not shown up, so its zones are not relied on");
  return {};
}

Error no_place_for(const NodeZones& node, const Demand& demand, const std::vector<Amounts>& left, std::int64_t cpu) {
  const bool one = must_be_one(node, demand);
  std::int64_t best = 0;
  std::int64_t sum = 0;
  for (const Amounts& zone : left) {
    const std::int64_t free = std::max<std::int64_t>(0, zone.get(kCpu));
    best = std::max(best, free);
    sum += free;
  }
  const std::int64_t most = one ? best : sum;
  if (most < cpu) {
    return refused(one ? fmt::format("no zone has {}, the best has {}", cpus_text(cpu), best / kPermille)
                       : fmt::format("its zones have no {}, but {}", cpus_text(cpu), sum / kPermille));
  }
  if (!one && node.policy == NodePolicy::kRestricted)
    return refused(fmt::format("restricted: {} would be on more zones than on an empty node", cpus_text(cpu)));
  return refused(
      fmt::format("no {} with {} and the memory and devices asked for", one ? "zone" : "zones", cpus_text(cpu)));
}

}  // namespace topolet::extender
