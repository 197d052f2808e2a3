#include "core/placement/take_cpus.hpp"

#include <algorithm>

namespace topolet::placement {
namespace {

struct FreeCore {
  CpuSet free;
  bool whole = false;
};

/// The usable CPUs core by core; a PU that belongs to no core is one of its own.
std::vector<FreeCore> free_cores(const topology::Topology& topology, const CpuSet& usable) {
  std::vector<FreeCore> cores;
  CpuSet rest = usable;
  for (const CpuSet& core : topology.cores) {
    if (!core.intersects(usable)) continue;
    CpuSet free = core & usable;
    rest -= free;
    const bool whole = free == (core & topology.online);
    cores.push_back({std::move(free), whole});
  }
  for (const std::uint32_t cpu : rest) cores.push_back({CpuSet{cpu}, true});
  std::sort(cores.begin(), cores.end(),
            [](const FreeCore& a, const FreeCore& b) { return a.free.first() < b.free.first(); });
  return cores;
}

}  // namespace

CpuSet take_cpus(const topology::Topology& topology, const CpuSet& usable, std::size_t count,
                 const std::vector<std::uint32_t>& order) {
  CpuSet taken;
  std::size_t wanted = count;
  for (const std::uint32_t cpu : order) {
    if (wanted == 0) break;
    if (!usable.contains(cpu) || taken.contains(cpu)) continue;
    taken.insert(cpu);
    --wanted;
  }
  if (wanted == 0) return taken;
  std::vector<FreeCore> cores = free_cores(topology, usable - taken);
  for (FreeCore& core : cores) {
    if (!core.whole || core.free.size() > wanted) continue;
    wanted -= core.free.size();
    taken |= core.free;
    core.free = {};
  }
  std::stable_sort(cores.begin(), cores.end(), [](const FreeCore& a, const FreeCore& b) { return a.whole < b.whole; });
  for (const FreeCore& core : cores) {
    for (const std::uint32_t cpu : core.free) {
      if (wanted == 0) return taken;
      taken.insert(cpu);
      --wanted;
    }
  }
  return taken;
}

CpuSet take_with_minimums(const topology::Topology& topology, const CpuSet& usable, std::size_t count,
                          const std::vector<CpuMinimum>& shares, const OrderOf& order_of, CpuSet taken) {
  const auto take = [&](const CpuSet& part, std::size_t share) {
    const CpuSet free = (part & usable) - taken;
    const std::size_t has = (part & taken).size();
    const std::size_t missing = count - std::min(count, taken.size());
    const std::size_t more = std::min({share - std::min(share, has), free.size(), missing});
    if (more > 0) taken |= take_cpus(topology, free, more, order_of(free, more));
  };
  for (const CpuMinimum& share : shares) take(share.cpus, share.count);
  take(usable | taken, count);
  return taken;
}

}  // namespace topolet::placement
