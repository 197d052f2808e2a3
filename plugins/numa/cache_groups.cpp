#include "plugins/numa/cache_groups.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace topolet::numa {
namespace {

std::size_t os_index_end(const topolet_topology& topology) {
  return topology.pu_count == 0 ? 0 : sdk::pus(topology)[topology.pu_count - 1].os_index + std::size_t{1};
}

/// Returns true if online CPUs of several cores share a cache; it may have offline ones, too.
bool has_several_cores(topolet_set cpus, const sdk::CoreMap& cores) {
  std::uint32_t first = TOPOLET_NONE;
  bool several = false;
  sdk::for_each_index(cpus, [&](std::uint32_t cpu) {
    const std::uint32_t core = cores.core_of(cpu);
    if (core == TOPOLET_NONE) return;
    several = several || (first != TOPOLET_NONE && core != first);
    first = core;
  });
  return several;
}

/// For each CPU the cache of this level that it shares with other cores, by OS index; empty if there are none.
std::vector<std::uint32_t> clusters_of_level(const topolet_topology& topology, std::uint32_t level) {
  const sdk::CoreMap cores(topology);
  std::vector<std::uint32_t> caches(os_index_end(topology), TOPOLET_NONE);
  bool any = false;
  for (std::uint32_t i = 0; i < topology.cache_count; ++i) {
    const topolet_cache& cache = sdk::caches(topology)[i];
    if (cache.level != level || cache.kind == TOPOLET_CACHE_INSTRUCTION || !has_several_cores(cache.cpus, cores))
      continue;
    any = true;
    sdk::for_each_index(cache.cpus, [&](std::uint32_t cpu) {
      if (cpu < caches.size()) caches[cpu] = i;
    });
  }
  return any ? caches : std::vector<std::uint32_t>();
}

/// For each CPU its last-level cache, by OS index; none where no core shares one with another.
std::vector<std::uint32_t> last_level_caches(const topolet_topology& topology) {
  const sdk::CoreMap cores(topology);
  std::vector<std::uint32_t> caches(os_index_end(topology), TOPOLET_NONE);
  std::map<std::uint32_t, std::uint32_t> core_of_cache;
  bool any_shared = false;
  for (const topolet_pu& pu : sdk::pus(topology)) {
    caches[pu.os_index] = pu.l3;
    if (pu.l3 == TOPOLET_NONE || any_shared) continue;
    const std::uint32_t core = cores.core_of(pu.os_index);
    any_shared = core_of_cache.try_emplace(pu.l3, core).first->second != core;
  }
  if (!any_shared) std::fill(caches.begin(), caches.end(), TOPOLET_NONE);
  return caches;
}

}  // namespace

CacheGroups::CacheGroups(const topolet_topology& topology) {
  group_by_node_and(topology, last_level_caches(topology));
  constexpr std::uint32_t kLowestSharedLevel = 2;
  std::uint32_t level = 0;
  for (const topolet_cache& cache : sdk::caches(topology)) level = std::max(level, cache.level);
  for (; !divide_nodes_ && level >= kLowestSharedLevel; --level) {
    const std::vector<std::uint32_t> clusters = clusters_of_level(topology, level);
    if (!clusters.empty()) group_by_node_and(topology, clusters);
  }
}

void CacheGroups::group_by_node_and(const topolet_topology& topology, const std::vector<std::uint32_t>& cache_by_cpu) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> groups;
  group_by_cpu_.assign(cache_by_cpu.size(), 0);
  auto last = groups.end();  // CPUs that follow each other are mostly in one group
  for (const topolet_pu& pu : sdk::pus(topology)) {
    const std::pair<std::uint32_t, std::uint32_t> key{pu.node, cache_by_cpu[pu.os_index]};
    if (last == groups.end() || last->first != key) {
      last = groups.try_emplace(key, static_cast<std::uint32_t>(groups.size())).first;
    }
    group_by_cpu_[pu.os_index] = last->second;
  }
  group_count_ = groups.size();
  divide_nodes_ = std::adjacent_find(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
                    return a.first.first == b.first.first;
                  }) != groups.end();
}

FreeByCache::FreeByCache(const topolet_topology& topology, const CacheGroups& groups, topolet_set free)
    : by_node_(topology.node_count + std::size_t{1}) {
  std::vector<std::size_t> free_of_group(groups.group_count(), 0);
  std::vector<std::size_t> node_of_group(groups.group_count(), topology.node_count);
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (topolet_set_has(free, pu.os_index) == 0) continue;
    const std::uint32_t group = groups.group_of(pu.os_index);
    ++free_of_group[group];
    node_of_group[group] = std::min<std::size_t>(pu.node, topology.node_count);
  }
  for (std::size_t group = 0; group < free_of_group.size(); ++group) {
    if (free_of_group[group] > 0) by_node_[node_of_group[group]].push_back(free_of_group[group]);
  }
  for (std::vector<std::size_t>& node : by_node_) std::sort(node.begin(), node.end(), std::greater<>());
}

CacheFit FreeByCache::fit(const std::vector<std::uint32_t>& nodes, bool outside_nodes, std::size_t wanted) const {
  std::vector<std::size_t> free;
  for (const std::uint32_t node : nodes) free.insert(free.end(), by_node_[node].begin(), by_node_[node].end());
  if (outside_nodes) free.insert(free.end(), by_node_.back().begin(), by_node_.back().end());
  if (nodes.size() + (outside_nodes ? 1 : 0) > 1) std::sort(free.begin(), free.end(), std::greater<>());
  CacheFit fit;
  auto cache = free.begin();
  for (; cache != free.end() && *cache < wanted; ++cache) {
    wanted -= *cache;
    ++fit.caches;
  }
  if (cache == free.end() || wanted == 0) return fit;
  // The remainder is taken from the smallest cache that has enough.
  const auto smaller = std::partition_point(cache, free.end(), [wanted](std::size_t has) { return has >= wanted; });
  fit.rest = *std::prev(smaller) - wanted;
  ++fit.caches;
  return fit;
}

}  // namespace topolet::numa
