#include "plugins/numa/core_order.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "plugins/numa/amounts.hpp"

namespace topolet::numa {
namespace {

/// A core as far as it can be used.
struct Core {
  std::vector<std::uint32_t> usable;
  bool whole = false;
  std::uint32_t l3 = TOPOLET_NONE;
  std::uint32_t node = TOPOLET_NONE;
};

/// The cores of the usable CPUs, by lowest CPU. A CPU whose core is unknown is a core of its own.
std::vector<Core> cores_of(const topolet_topology& topology, topolet_set usable) {
  std::vector<Core> cores;
  std::vector<std::size_t> at(topology.core_count, SIZE_MAX);
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (topolet_set_has(usable, pu.os_index) == 0) continue;
    const bool known = pu.core < topology.core_count;
    const bool fresh = !known || at[pu.core] == SIZE_MAX;
    if (fresh) cores.push_back({{}, !known, pu.l3, pu.node});
    if (fresh && known) at[pu.core] = cores.size() - 1;
    (known ? cores[at[pu.core]] : cores.back()).usable.push_back(pu.os_index);
  }
  for (std::size_t core = 0; core < at.size(); ++core) {
    if (at[core] != SIZE_MAX)
      cores[at[core]].whole = cores[at[core]].usable.size() == sdk::size_of(topology.cores[core]);
  }
  return cores;
}

/// Whole cores of one cache.
struct Cache {
  std::uint32_t node = TOPOLET_NONE;
  std::size_t threads = 0;
  std::size_t threads_of_node = 0;
  std::vector<const Core*> cores;
};

std::vector<Cache> caches_of(const std::vector<Core>& cores) {
  std::vector<Cache> caches;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> by_place;
  std::map<std::uint32_t, std::size_t> threads_of_node;
  for (const Core& core : cores) {
    if (!core.whole) continue;
    const auto [found, fresh] = by_place.try_emplace({core.node, core.l3}, caches.size());
    if (fresh) caches.push_back({core.node, 0, 0, {}});
    Cache& cache = caches[found->second];
    cache.cores.push_back(&core);
    cache.threads += core.usable.size();
    threads_of_node[core.node] += core.usable.size();
  }
  for (Cache& cache : caches) cache.threads_of_node = threads_of_node[cache.node];
  return caches;
}

/// Whole cores, those of one cache together: first one that can hold the whole request; if there is none, those with
/// most room first, node by node, so that they are few. The lowest first among equals.
std::vector<const Core*> whole_cores(const std::vector<Core>& cores, std::size_t wanted, Strategy strategy) {
  std::vector<Cache> caches = caches_of(cores);
  std::stable_sort(caches.begin(), caches.end(), [](const Cache& a, const Cache& b) {
    if (a.node == b.node) return a.threads > b.threads;
    return a.threads_of_node != b.threads_of_node ? a.threads_of_node > b.threads_of_node : a.node < b.node;
  });
  const Cache* first = nullptr;
  for (const Cache& cache : caches) {
    if (cache.threads < wanted) continue;
    const bool better = first == nullptr || (strategy == Strategy::kPacked ? cache.threads < first->threads
                                                                           : cache.threads > first->threads);
    const bool lower = first != nullptr && cache.threads == first->threads &&
                       cache.cores.front()->usable.front() < first->cores.front()->usable.front();
    if (better || lower) first = &cache;
  }
  std::vector<const Core*> whole;
  if (first != nullptr) whole = first->cores;
  for (const Cache& cache : caches) {
    if (&cache != first) whole.insert(whole.end(), cache.cores.begin(), cache.cores.end());
  }
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

/// Which of the cores to take, by position: each one that fits when its turn comes.
std::vector<bool> first_fitting(const std::vector<const Core*>& cores, std::size_t wanted) {
  std::vector<bool> taken;
  for (const Core* core : cores) {
    taken.push_back(core->usable.size() <= wanted);
    if (taken.back()) wanted -= core->usable.size();
  }
  return taken;
}

/// The first ones of those that add up to `wanted`, if any do.
std::vector<bool> adding_up(const std::vector<const Core*>& cores, std::size_t wanted) {
  // What the cores from the i-th on can add up to.
  std::vector<std::vector<bool>> sums(cores.size() + 1, std::vector<bool>(wanted + 1));
  sums.back()[0] = true;
  for (std::size_t i = cores.size(); i-- > 0;) {
    const std::size_t threads = cores[i]->usable.size();
    for (std::size_t sum = 0; sum <= wanted; ++sum) {
      sums[i][sum] = sums[i + 1][sum] || (sum >= threads && sums[i + 1][sum - threads]);
    }
  }
  if (!sums.front()[wanted]) return first_fitting(cores, wanted);
  std::vector<bool> taken;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const std::size_t threads = cores[i]->usable.size();
    taken.push_back(threads <= wanted && sums[i + 1][wanted - threads]);
    if (taken.back()) wanted -= threads;
  }
  return taken;
}

void append(std::vector<std::uint32_t>& cpus, const Core& core) {
  cpus.insert(cpus.end(), core.usable.begin(), core.usable.end());
}

CpuOrder order_of(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy,
                  bool must_add_up) {
  const std::vector<Core> cores = cores_of(topology, usable);

  std::vector<std::uint32_t> whole_taken;
  std::vector<const Core*> whole_left;
  std::size_t taken_cores = 0;
  const std::vector<const Core*> whole = whole_cores(cores, wanted, strategy);
  const std::vector<bool> taken = must_add_up ? adding_up(whole, wanted) : first_fitting(whole, wanted);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (taken[i]) {
      append(whole_taken, *whole[i]);
      ++taken_cores;
    } else {
      whole_left.push_back(whole[i]);
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

}  // namespace

CpuOrder core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy) {
  return order_of(topology, usable, wanted, strategy, false);
}

CpuOrder whole_core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy) {
  return order_of(topology, usable, wanted, strategy, true);
}

}  // namespace topolet::numa
