#include "plugins/numa/core_order.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace topolet::numa {
namespace {

/// The usable CPUs of one core.
struct Core {
  std::vector<std::uint32_t> cpus;
  bool whole = false;
  std::uint32_t l3 = TOPOLET_NONE;
  std::uint32_t node = TOPOLET_NONE;
};

/// The cores of the usable CPUs, by lowest CPU.
std::vector<Core> cores_of(const topolet_topology& topology, topolet_set usable) {
  const sdk::CoreMap map(topology);
  std::vector<Core> cores;
  std::vector<std::size_t> position(map.core_count(), SIZE_MAX);
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (topolet_set_has(usable, pu.os_index) == 0) continue;
    const std::uint32_t number = map.core_of(pu.os_index);
    if (position[number] == SIZE_MAX) {
      position[number] = cores.size();
      cores.push_back({{}, false, pu.l3, pu.node});
    }
    Core& core = cores[position[number]];
    core.cpus.push_back(pu.os_index);
    core.whole = core.cpus.size() == map.threads_of(number);
  }
  return cores;
}

/// The whole cores of one last-level cache.
struct Cache {
  std::uint32_t node = TOPOLET_NONE;
  std::size_t threads = 0;
  std::size_t threads_of_node = 0;
  std::vector<const Core*> cores;
};

std::vector<Cache> caches_of(const std::vector<Core>& cores) {
  std::vector<Cache> caches;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> by_node_and_l3;
  std::map<std::uint32_t, std::size_t> threads_of_node;
  for (const Core& core : cores) {
    if (!core.whole) continue;
    const auto [found, is_new] = by_node_and_l3.try_emplace({core.node, core.l3}, caches.size());
    if (is_new) caches.push_back({core.node, 0, 0, {}});
    Cache& cache = caches[found->second];
    cache.cores.push_back(&core);
    cache.threads += core.cpus.size();
    threads_of_node[core.node] += core.cpus.size();
  }
  for (Cache& cache : caches) cache.threads_of_node = threads_of_node[cache.node];
  return caches;
}

/// Whole cores, those of one cache together. First those of the best cache that can serve the whole request; then, so
/// that few caches are used, node by node the caches with the most whole cores. Among equals the lowest come first.
std::vector<const Core*> whole_cores(const std::vector<Core>& cores, std::size_t wanted, Strategy strategy) {
  std::vector<Cache> caches = caches_of(cores);
  std::stable_sort(caches.begin(), caches.end(), [](const Cache& a, const Cache& b) {
    if (a.node == b.node) return a.threads > b.threads;
    return a.threads_of_node != b.threads_of_node ? a.threads_of_node > b.threads_of_node : a.node < b.node;
  });
  const Cache* best = nullptr;
  for (const Cache& cache : caches) {
    if (cache.threads < wanted) continue;
    const bool better = best == nullptr ||
                        (strategy == Strategy::kPacked ? cache.threads < best->threads : cache.threads > best->threads);
    const bool lower = best != nullptr && cache.threads == best->threads &&
                       cache.cores.front()->cpus.front() < best->cores.front()->cpus.front();
    if (better || lower) best = &cache;
  }
  std::vector<const Core*> whole;
  if (best != nullptr) whole = best->cores;
  for (const Cache& cache : caches) {
    if (&cache != best) whole.insert(whole.end(), cache.cores.begin(), cache.cores.end());
  }
  return whole;
}

/// Partly used cores in the order in which to take `wanted` threads of them: first the fullest that has enough, then
/// those with the most usable threads.
std::vector<const Core*> partly_used_cores(const std::vector<Core>& cores, std::size_t wanted) {
  std::vector<const Core*> parts;
  for (const Core& core : cores) {
    if (!core.whole) parts.push_back(&core);
  }
  std::stable_sort(parts.begin(), parts.end(), [wanted](const Core* a, const Core* b) {
    const bool a_suffices = a->cpus.size() >= wanted;
    const bool b_suffices = b->cpus.size() >= wanted;
    if (a_suffices != b_suffices) return a_suffices;
    return a_suffices ? a->cpus.size() < b->cpus.size() : a->cpus.size() > b->cpus.size();
  });
  return parts;
}

/// Whether to take each core, by position: those that do not exceed what is still wanted when their turn comes.
std::vector<bool> first_fitting(const std::vector<const Core*>& cores, std::size_t wanted) {
  std::vector<bool> taken;
  for (const Core* core : cores) {
    taken.push_back(core->cpus.size() <= wanted);
    if (taken.back()) wanted -= core->cpus.size();
  }
  return taken;
}

/// The same, but cores that add up to exactly `wanted` if there are any; of these the first possible ones.
std::vector<bool> adding_up(const std::vector<const Core*>& cores, std::size_t wanted) {
  // sums[i][n]: whether some of the cores from the i-th on have n threads together.
  std::vector<std::vector<bool>> sums(cores.size() + 1, std::vector<bool>(wanted + 1));
  sums.back()[0] = true;
  for (std::size_t i = cores.size(); i-- > 0;) {
    const std::size_t threads = cores[i]->cpus.size();
    for (std::size_t sum = 0; sum <= wanted; ++sum) {
      sums[i][sum] = sums[i + 1][sum] || (sum >= threads && sums[i + 1][sum - threads]);
    }
  }
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

CpuOrder order_of(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy,
                  bool prefer_exact) {
  const std::vector<Core> cores = cores_of(topology, usable);

  std::vector<std::uint32_t> cpus_of_whole_cores;
  std::vector<const Core*> whole_cores_left;
  std::size_t whole_cores_taken = 0;
  const std::vector<const Core*> whole = whole_cores(cores, wanted, strategy);
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

}  // namespace

CpuOrder core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy) {
  return order_of(topology, usable, wanted, strategy, false);
}

CpuOrder whole_core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy) {
  return order_of(topology, usable, wanted, strategy, true);
}

}  // namespace topolet::numa
