#include "plugins/numa/whole_cores.hpp"

#include <cstdint>
#include <vector>

namespace topolet::numa {

WholeCores::WholeCores(const topolet_topology& topology, topolet_set available) {
  const sdk::CoreMap map(topology);
  sizes_differ_ = map.sizes_differ();
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

bool are_whole_cores(const topolet_topology& topology, topolet_set cpus) {
  return sdk::CoreMap(topology).on_whole_cores(cpus).size() == sdk::size_of(cpus);
}

}  // namespace topolet::numa
