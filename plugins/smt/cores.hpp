// Which hardware threads share a core.
#pragma once

#include <topolet/policy.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace topolet::smt {

/// Calls `visit` with every index of a set, ascending.
template <class Visit>
void for_each(topolet_set set, Visit visit) {
  for (std::size_t i = 0; i < set.count; ++i) {
    for (std::uint64_t rest = set.words[i]; rest != 0; rest &= rest - 1) {
      visit(static_cast<std::uint32_t>(i * 64 + static_cast<std::size_t>(std::countr_zero(rest))));
    }
  }
}

/// The online CPUs of a machine core by core. A CPU whose core is unknown is a core of its own.
class Cores {
 public:
  explicit Cores(const topolet_topology& topology);

  std::size_t count() const { return sizes_.size(); }
  /// One more than the highest OS index of a CPU.
  std::size_t cpus() const { return by_cpu_.size(); }
  /// TOPOLET_NONE for a CPU that is not online.
  std::uint32_t core_of(std::uint32_t cpu) const { return cpu < by_cpu_.size() ? by_cpu_[cpu] : TOPOLET_NONE; }
  std::size_t threads_of(std::uint32_t core) const { return sizes_[core]; }
  /// Whether any core has more threads than one.
  bool has_siblings() const {
    return std::any_of(sizes_.begin(), sizes_.end(), [](std::uint32_t threads) { return threads > 1; });
  }
  std::size_t most_threads() const { return sizes_.empty() ? 1 : *std::max_element(sizes_.begin(), sizes_.end()); }
  /// As the kubelet counts: CPUs by cores, rounded down.
  std::size_t threads_per_core() const { return threads_per_core_; }

  /// Those of `cpus` whose siblings are all among `cpus` too.
  sdk::Set whole(topolet_set cpus) const;
  /// The lowest of `cpus` on each core.
  sdk::Set one_of_each(topolet_set cpus) const;
  /// The siblings of `cpus`, without these.
  sdk::Set beside(topolet_set cpus) const;
  /// The cores that `cpus` are of, by their lowest CPU there.
  std::vector<std::uint32_t> cores_of(const sdk::Set& cpus) const;
  /// Those of `cpus` that are on one of `cores`.
  sdk::Set on(const std::vector<std::uint32_t>& cores, const sdk::Set& cpus) const;

 private:
  std::vector<std::uint32_t> by_cpu_;  ///< core, by OS index
  std::vector<std::uint32_t> sizes_;   ///< threads, by core
  std::size_t threads_per_core_ = 1;
};

}  // namespace topolet::smt
