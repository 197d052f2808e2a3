#include "plugins/numa/core_order.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "plugins/numa/cache_groups.hpp"

namespace topolet::numa {
namespace {

/// The usable CPUs of one core.
struct Core {
  std::vector<std::uint32_t> cpus;
  bool whole = false;
  std::uint32_t node = TOPOLET_NONE;  ///< by position; above all of them for a package outside any node
  std::uint32_t cache = 0;            ///< its group in CacheGroups, which is within the node, in its package
};

/// A number for the package of a CPU outside any node, as those of different packages share nothing; 0 for others.
std::uint32_t package_of_outsider(const topolet_topology& topology, const topolet_pu& pu) {
  if (pu.node != TOPOLET_NONE) return 0;
  return 1 + std::min<std::uint32_t>(pu.package, static_cast<std::uint32_t>(topology.package_count));
}

/// The cores of the usable CPUs, by lowest CPU.
std::vector<Core> cores_of(const topolet_topology& topology, topolet_set usable) {
  const sdk::CoreMap map(topology);
  const CacheGroups groups(topology);
  std::vector<Core> cores;
  std::vector<std::size_t> position(map.core_count(), SIZE_MAX);
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (topolet_set_has(usable, pu.os_index) == 0) continue;
    const std::uint32_t number = map.core_of(pu.os_index);
    if (position[number] == SIZE_MAX) {
      position[number] = cores.size();
      const std::uint32_t package = package_of_outsider(topology, pu);
      const auto cache = groups.group_of(pu.os_index) + package * static_cast<std::uint32_t>(groups.group_count());
      cores.push_back({{}, false, package == 0 ? pu.node : topology.node_count + package, cache});
    }
    Core& core = cores[position[number]];
    core.cpus.push_back(pu.os_index);
    core.whole = core.cpus.size() == map.threads_of(number);
  }
  return cores;
}

using Cores = std::vector<const Core*>;

/// The cores of one cache.
struct Cache {
  std::uint32_t node = TOPOLET_NONE;
  std::size_t threads = 0;           ///< of all its cores
  std::size_t threads_of_whole = 0;  ///< of those that are whole
  Cores cores;
};

/// Returns the caches, ordered by their lowest cores.
std::vector<Cache> caches_of(const Cores& cores) {
  std::vector<Cache> caches;
  std::map<std::uint32_t, std::size_t> position;
  for (const Core* core : cores) {
    const auto [found, is_new] = position.try_emplace(core->cache, caches.size());
    if (is_new) caches.push_back({core->node, 0, 0, {}});
    Cache& cache = caches[found->second];
    cache.cores.push_back(core);
    cache.threads += core->cpus.size();
    if (core->whole) cache.threads_of_whole += core->cpus.size();
  }
  return caches;
}

/// Returns the cache that `suffices` with the fewest or the most threads, as the strategy says, the lowest among
/// equals; null if there is none.
template <class Suffices>
const Cache* best_cache(const std::vector<Cache>& caches, Strategy strategy, Suffices suffices) {
  const Cache* best = nullptr;
  for (const Cache& cache : caches) {
    if (!suffices(cache)) continue;
    const bool better = best == nullptr ||
                        (strategy == Strategy::kSpread ? cache.threads > best->threads : cache.threads < best->threads);
    if (better) best = &cache;
  }
  return best;
}

/// Whole cores in the order in which to take `wanted` threads of them, so that few caches are used: from the node with
/// the most, the caches with the most, until one has all that is still wanted.
Cores in_few_caches(const Cores& whole, std::size_t wanted, Strategy strategy) {
  std::vector<Cache> caches = caches_of(whole);
  std::map<std::uint32_t, std::size_t> threads_of_node;
  for (const Cache& cache : caches) threads_of_node[cache.node] += cache.threads;
  std::stable_sort(caches.begin(), caches.end(), [&](const Cache& a, const Cache& b) {
    if (a.node == b.node) return a.threads > b.threads;
    const std::size_t of_a = threads_of_node[a.node];
    const std::size_t of_b = threads_of_node[b.node];
    return of_a != of_b ? of_a > of_b : a.node < b.node;
  });
  Cores order;
  while (!caches.empty()) {
    const Cache* next = best_cache(caches, strategy, [&](const Cache& cache) {
      return wanted > 0 && cache.threads >= wanted && cache.node == caches.front().node;
    });
    if (next == nullptr) {
      next =
          best_cache(caches, strategy, [wanted](const Cache& cache) { return wanted > 0 && cache.threads >= wanted; });
    }
    const auto taken = next == nullptr ? caches.begin() : caches.begin() + (next - caches.data());
    order.insert(order.end(), taken->cores.begin(), taken->cores.end());
    wanted -= std::min(wanted, taken->threads);
    caches.erase(taken);
  }
  return order;
}

/// Partly used cores in the order in which to take `wanted` threads of them: first the fullest that has enough, then
/// those with the most usable threads.
Cores partly_used_cores(const Cores& cores, std::size_t wanted) {
  Cores parts;
  std::copy_if(cores.begin(), cores.end(), std::back_inserter(parts), [](const Core* core) { return !core->whole; });
  std::stable_sort(parts.begin(), parts.end(), [wanted](const Core* a, const Core* b) {
    const bool a_suffices = a->cpus.size() >= wanted;
    const bool b_suffices = b->cpus.size() >= wanted;
    if (a_suffices != b_suffices) return a_suffices;
    return a_suffices ? a->cpus.size() < b->cpus.size() : a->cpus.size() > b->cpus.size();
  });
  return parts;
}

/// Returns, for each core, whether to take it: each that does not exceed the number still wanted at its turn.
std::vector<bool> first_fitting(const Cores& cores, std::size_t wanted) {
  std::vector<bool> taken;
  for (const Core* core : cores) {
    taken.push_back(core->cpus.size() <= wanted);
    if (taken.back()) wanted -= core->cpus.size();
  }
  return taken;
}

/// sums[i][n]: whether some of the cores from the i-th on have n threads together.
std::vector<std::vector<bool>> possible_sums(const Cores& cores, std::size_t wanted) {
  std::vector<std::vector<bool>> sums(cores.size() + 1, std::vector<bool>(wanted + 1));
  sums.back()[0] = true;
  for (std::size_t i = cores.size(); i-- > 0;) {
    const std::size_t threads = cores[i]->cpus.size();
    for (std::size_t sum = 0; sum <= wanted; ++sum) {
      sums[i][sum] = sums[i + 1][sum] || (sum >= threads && sums[i + 1][sum - threads]);
    }
  }
  return sums;
}

/// The same, but cores that add up to exactly `wanted` if there are any; of these the first possible ones.
std::vector<bool> adding_up(const Cores& cores, std::size_t wanted) {
  const std::vector<std::vector<bool>> sums = possible_sums(cores, wanted);
  if (!sums.front()[wanted]) return first_fitting(cores, wanted);
  std::vector<bool> taken;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const std::size_t threads = cores[i]->cpus.size();
    taken.push_back(threads <= wanted && sums[i + 1][wanted - threads]);
    if (taken.back()) wanted -= threads;
  }
  return taken;
}

void append(std::vector<std::uint32_t>& cpus, const Core& core) {
  cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
}

/// Takes `wanted` threads of these cores, from as few caches as possible.
CpuOrder order_of_cores(const Cores& cores, std::size_t wanted, Strategy strategy, bool prefer_exact) {
  std::vector<std::uint32_t> cpus_of_whole_cores;
  Cores whole;
  Cores whole_cores_left;
  std::size_t whole_cores_taken = 0;
  std::copy_if(cores.begin(), cores.end(), std::back_inserter(whole), [](const Core* core) { return core->whole; });
  whole = in_few_caches(whole, wanted, strategy);
  const std::vector<bool> taken = prefer_exact ? adding_up(whole, wanted) : first_fitting(whole, wanted);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (taken[i]) {
      append(cpus_of_whole_cores, *whole[i]);
      ++whole_cores_taken;
    } else {
      whole_cores_left.push_back(whole[i]);
    }
  }
  const std::size_t threads_left = wanted - cpus_of_whole_cores.size();
  std::vector<std::uint32_t> partly_used;
  for (const Core* core : partly_used_cores(cores, threads_left)) append(partly_used, *core);

  // If the partly used cores have too few threads, taking them would only make the container meet more neighbours: the
  // threads then come from one more free core.
  const bool from_partly_used = threads_left > 0 && (partly_used.size() >= threads_left || whole_cores_left.empty());
  const auto first_part_end =
      partly_used.begin() +
      static_cast<std::ptrdiff_t>(from_partly_used ? std::min(threads_left, partly_used.size()) : 0);
  CpuOrder order;
  order.cpus.assign(partly_used.begin(), first_part_end);
  order.cpus.insert(order.cpus.end(), cpus_of_whole_cores.begin(), cpus_of_whole_cores.end());
  for (const Core* core : whole_cores_left) append(order.cpus, *core);
  order.cpus.insert(order.cpus.end(), first_part_end, partly_used.end());

  if (whole_cores_taken > 0) order.reason = sdk::counted(whole_cores_taken, "whole core");
  if (threads_left > 0) {
    order.reason += (order.reason.empty() ? "" : " and ") + sdk::counted(threads_left, "thread") +
                    (from_partly_used ? " of partly used cores" : " of one more free core");
  }
  return order;
}

/// The cache to take all `wanted` threads from; null if none has enough. Best is one where no core needs to be divided,
/// then one that has whole cores for all but the threads that do not fill one.
const Cache* cache_for_all(const std::vector<Cache>& caches, std::size_t wanted, Strategy strategy, bool prefer_exact) {
  if (prefer_exact) {
    return best_cache(caches, strategy, [wanted](const Cache& cache) -> bool {
      return possible_sums(cache.cores, wanted).front()[wanted];
    });
  }
  std::size_t per_core = 1;
  for (const Cache& cache : caches) {
    for (const Core* core : cache.cores) per_core = std::max(per_core, core->cpus.size());
  }
  const std::size_t in_whole_cores = wanted / per_core * per_core;
  const auto has_whole_cores = [&](const Cache& cache) {
    return cache.threads >= wanted && cache.threads_of_whole >= in_whole_cores;
  };
  const Cache* best = best_cache(caches, strategy, [&](const Cache& cache) {
    return has_whole_cores(cache) && cache.threads - cache.threads_of_whole >= wanted - in_whole_cores;
  });
  if (best == nullptr) best = best_cache(caches, strategy, has_whole_cores);
  if (best == nullptr) best = best_cache(caches, strategy, [&](const Cache& cache) { return cache.threads >= wanted; });
  return best;
}

CpuOrder order_of(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy,
                  bool prefer_exact) {
  const std::vector<Core> cores = cores_of(topology, usable);
  Cores all;
  for (const Core& core : cores) all.push_back(&core);
  const std::vector<Cache> caches = caches_of(all);
  const Cache* const one = caches.size() > 1 ? cache_for_all(caches, wanted, strategy, prefer_exact) : nullptr;
  if (one == nullptr) return order_of_cores(all, wanted, strategy, prefer_exact);
  CpuOrder order = order_of_cores(one->cores, wanted, strategy, prefer_exact);
  std::erase_if(all, [one](const Core* core) { return core->cache == one->cores.front()->cache; });
  const CpuOrder rest = order_of_cores(all, 0, strategy, false);
  order.cpus.insert(order.cpus.end(), rest.cpus.begin(), rest.cpus.end());
  return order;
}

}  // namespace

CpuOrder core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy) {
  return order_of(topology, usable, wanted, strategy, false);
}

CpuOrder whole_core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy) {
  return order_of(topology, usable, wanted, strategy, true);
}

}  // namespace topolet::numa
