#include "plugins/numa/whole_cores.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace topolet::numa {

WholeCores::WholeCores(const topolet_topology& topology, topolet_set available) {
  const sdk::CoreMap map(topology);
  sizes_differ_ = map.sizes_differ();
  threads_of_a_core_ = map.most_threads();
  cpus_ = map.on_whole_cores(available);
  sdk::for_each_index(cpus_.view(),
                      [&](std::uint32_t cpu) { by_threads_[map.threads_of(map.core_of(cpu))].insert(cpu); });
}

bool WholeCores::add_up_to(std::size_t wanted, topolet_set within) const {
  std::size_t threads_here = 0;
  for (const auto& [threads, cpus] : by_threads_) {
    threads_here += sdk::size_of_both(cpus.view(), within) / threads * threads;
  }
  if (wanted > threads_here) return false;
  if (by_threads_.size() == 1) return wanted % by_threads_.begin()->first == 0;
  // For each sum of threads the fewest cores of the current size that it needs besides smaller cores; kNever: no cores
  // looked at so far have this sum.
  constexpr std::size_t kNever = SIZE_MAX;
  std::vector<std::size_t> taken(wanted + 1, kNever);
  taken[0] = 0;
  for (const auto& [threads, cpus] : by_threads_) {
    const std::size_t cores = sdk::size_of_both(cpus.view(), within) / threads;
    for (std::size_t sum = 0; sum <= wanted; ++sum) {
      if (taken[sum] != kNever) {
        taken[sum] = 0;
      } else if (sum >= threads && taken[sum - threads] < cores) {
        taken[sum] = taken[sum - threads] + 1;
      }
    }
  }
  return taken[wanted] != kNever;
}

std::size_t WholeCores::beside_others(std::size_t wanted, topolet_set within) const {
  std::size_t rest = wanted;
  bool is_one_left = false;
  for (auto size = by_threads_.rbegin(); size != by_threads_.rend(); ++size) {
    const auto& [threads, cpus] = *size;
    const std::size_t cores = sdk::size_of_both(cpus.view(), within) / threads;
    const std::size_t filled = std::min(cores, rest / threads);
    rest -= filled * threads;
    is_one_left = is_one_left || cores > filled;
  }
  // Threads that fill no core are taken from cores in use where these have enough.
  const std::size_t on_parts = sdk::size_of(within) - sdk::size_of_both(cpus_.view(), within);
  if (sizes_differ_) return is_one_left && on_parts < rest ? 0 : rest;
  return rest - std::min(rest, wanted % threads_of_a_core_);
}

bool are_whole_cores(const topolet_topology& topology, topolet_set cpus) {
  return sdk::CoreMap(topology).on_whole_cores(cpus).size() == sdk::size_of(cpus);
}

std::size_t count_beside_others(const topolet_topology& topology, topolet_set taken, topolet_set available) {
  const sdk::CoreMap map(topology);
  std::vector<std::size_t> of_core(map.core_count(), 0);
  sdk::for_each_index(available, [&](std::uint32_t cpu) {
    if (const std::uint32_t core = map.core_of(cpu); core != TOPOLET_NONE) ++of_core[core];
  });
  std::size_t beside = 0;
  sdk::for_each_index(taken, [&](std::uint32_t cpu) {
    const std::uint32_t core = map.core_of(cpu);
    if (core != TOPOLET_NONE && of_core[core] < map.threads_of(core)) ++beside;
  });
  return beside;
}

}  // namespace topolet::numa
