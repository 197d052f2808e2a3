// Which hardware threads share a core.
#pragma once

#include <topolet/policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace topolet::smt {

/// Which online CPU is on which core. Cores are numbered from 0; a CPU whose core is unknown is a core of its own.
class CoreMap {
 public:
  explicit CoreMap(const topolet_topology& topology);

  std::size_t core_count() const { return threads_by_core_.size(); }
  /// One more than the highest OS index of an online CPU.
  std::size_t os_index_end() const { return core_by_cpu_.size(); }
  /// TOPOLET_NONE for a CPU that is not online.
  std::uint32_t core_of(std::uint32_t cpu) const {
    return cpu < core_by_cpu_.size() ? core_by_cpu_[cpu] : TOPOLET_NONE;
  }
  std::size_t threads_of(std::uint32_t core) const { return threads_by_core_[core]; }
  /// Whether any core has more than one thread.
  bool has_siblings() const {
    return std::any_of(threads_by_core_.begin(), threads_by_core_.end(),
                       [](std::uint32_t threads) { return threads > 1; });
  }
  std::size_t most_threads() const {
    return threads_by_core_.empty() ? 1 : *std::max_element(threads_by_core_.begin(), threads_by_core_.end());
  }
  /// sdk::threads_per_core() of the machine.
  std::size_t threads_per_core() const { return threads_per_core_; }

  /// Those of `cpus` whose siblings are all among `cpus`, too.
  sdk::Set on_whole_cores(topolet_set cpus) const;
  /// The lowest of `cpus` on each core.
  sdk::Set lowest_of_each_core(topolet_set cpus) const;
  /// The siblings of `cpus`, without `cpus` themselves.
  sdk::Set siblings_of(topolet_set cpus) const;
  /// The cores that `cpus` are on, each once, in the order of the lowest of `cpus` on them.
  std::vector<std::uint32_t> cores_of(const sdk::Set& cpus) const;
  /// Those of `cpus` that are on one of `cores`.
  sdk::Set on_cores(const std::vector<std::uint32_t>& cores, const sdk::Set& cpus) const;

 private:
  std::vector<std::uint32_t> core_by_cpu_;      ///< by OS index
  std::vector<std::uint32_t> threads_by_core_;  ///< how many
  std::size_t threads_per_core_ = 1;
};

}  // namespace topolet::smt
