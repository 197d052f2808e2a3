#include "plugins/numa/whole_cores.hpp"

#include <cstdint>
#include <vector>

namespace topolet::numa {

WholeCores::WholeCores(const topolet_topology& topology, topolet_set available) {
  struct Core {
    std::size_t threads = 0;
    std::size_t available = 0;
  };
  std::vector<Core> cores(topology.core_count);
  std::vector<std::size_t> core_of;  // by position of the CPU
  for (const topolet_pu& pu : sdk::pus(topology)) {
    const bool known = pu.core < topology.core_count;
    core_of.push_back(known ? pu.core : cores.size());
    if (!known) cores.emplace_back();
    ++cores[core_of.back()].threads;
    if (topolet_set_has(available, pu.os_index) != 0) ++cores[core_of.back()].available;
  }
  const auto pus = sdk::pus(topology);
  for (std::size_t i = 0; i < core_of.size(); ++i) {
    const Core& core = cores[core_of[i]];
    sizes_differ_ = sizes_differ_ || core.threads != cores[core_of[0]].threads;
    if (core.available < core.threads) continue;
    cpus_.insert(pus[i].os_index);
    by_threads_[core.threads].insert(pus[i].os_index);
  }
}

bool WholeCores::add_up_to(std::size_t wanted, topolet_set within) const {
  if (wanted > cpus_.size()) return false;
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
  return WholeCores(topology, cpus).cpus().size() == sdk::size_of(cpus);
}

}  // namespace topolet::numa
