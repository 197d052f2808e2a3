// Which hardware threads share a core, and which cores are free as a whole. See <topolet/policy.hpp>.
#pragma once

#include <topolet/policy/views.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace topolet::sdk {

/// Which online CPU is on which core. Cores are numbered from 0, in the order of their lowest CPUs; a CPU whose core is
/// unknown is a core of its own. Borrows nothing.
class CoreMap {
 public:
  explicit CoreMap(const topolet_topology& topology) {
    std::vector<std::uint32_t> number(topology.core_count, TOPOLET_NONE);
    for (const topolet_pu& pu : pus(topology)) {
      if (core_by_cpu_.size() <= pu.os_index) core_by_cpu_.resize(pu.os_index + std::size_t{1}, TOPOLET_NONE);
      const bool known = pu.core < number.size() && number[pu.core] != TOPOLET_NONE;
      if (!known) threads_by_core_.push_back(0);
      const auto core = known ? number[pu.core] : static_cast<std::uint32_t>(threads_by_core_.size() - 1);
      if (pu.core < number.size()) number[pu.core] = core;
      core_by_cpu_[pu.os_index] = core;
      ++threads_by_core_[core];
    }
    if (core_count() > 0) threads_per_core_ = std::max<std::size_t>(1, topology.pu_count / core_count());
  }

  std::size_t core_count() const { return threads_by_core_.size(); }
  /// One more than the highest OS index of an online CPU.
  std::size_t os_index_end() const { return core_by_cpu_.size(); }
  /// TOPOLET_NONE for a CPU that is not online.
  std::uint32_t core_of(std::uint32_t cpu) const {
    return cpu < core_by_cpu_.size() ? core_by_cpu_[cpu] : TOPOLET_NONE;
  }
  std::size_t threads_of(std::uint32_t core) const { return threads_by_core_[core]; }
  /// Of the core with the most; at least 1.
  std::size_t most_threads() const {
    return threads_by_core_.empty() ? 1 : *std::max_element(threads_by_core_.begin(), threads_by_core_.end());
  }
  /// Whether there are cores with different numbers of threads.
  bool sizes_differ() const {
    return std::any_of(threads_by_core_.begin(), threads_by_core_.end(),
                       [this](std::uint32_t threads) { return threads != threads_by_core_.front(); });
  }
  /// How many threads a core has, as the kubelet counts: online CPUs divided by cores, rounded down, at least 1. On
  /// machines with cores of different sizes it is an average.
  std::size_t threads_per_core() const { return threads_per_core_; }

  /// Those of `cpus` that are on whole cores: cores whose online CPUs are all among `cpus`.
  Set on_whole_cores(topolet_set cpus) const {
    std::vector<std::uint32_t> counts(core_count(), 0);
    for_each_index(cpus, [&](std::uint32_t cpu) {
      if (core_of(cpu) != TOPOLET_NONE) ++counts[core_of(cpu)];
    });
    Set whole;
    for_each_index(cpus, [&](std::uint32_t cpu) {
      const std::uint32_t core = core_of(cpu);
      if (core != TOPOLET_NONE && counts[core] == threads_by_core_[core]) whole.insert(cpu);
    });
    return whole;
  }

 private:
  std::vector<std::uint32_t> core_by_cpu_;      ///< by OS index
  std::vector<std::uint32_t> threads_by_core_;  ///< how many
  std::size_t threads_per_core_ = 1;
};

/// CoreMap::threads_per_core(), where nothing else of a CoreMap is needed.
inline std::size_t threads_per_core(const topolet_topology& topology) { return CoreMap(topology).threads_per_core(); }

}  // namespace topolet::sdk
