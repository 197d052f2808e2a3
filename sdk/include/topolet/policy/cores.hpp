// Which hardware threads share a core, and which cores are free as a whole. See <topolet/policy.hpp>.
#pragma once

#include <topolet/policy/views.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
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
      add_thread(core, pu.os_index);
    }
    if (core_count() > 0) threads_per_core_ = std::max<std::size_t>(1, topology.pu_count / core_count());
    for (const std::uint32_t threads : threads_by_core_) {
      most_threads_ = std::max<std::size_t>(most_threads_, threads);
      sizes_differ_ = sizes_differ_ || threads != threads_by_core_.front();
    }
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
  std::size_t most_threads() const { return most_threads_; }
  /// Whether there are cores with different numbers of threads.
  bool sizes_differ() const { return sizes_differ_; }
  /// How many threads a core has, as the kubelet counts: online CPUs divided by cores, rounded down, at least 1. On
  /// machines with cores of different sizes it is an average.
  std::size_t threads_per_core() const { return threads_per_core_; }

  /// Those of `cpus` that are on whole cores: cores whose online CPUs are all among `cpus`.
  Set on_whole_cores(topolet_set cpus) const {
    return is_regular_ ? whole_by_siblings(words_of(cpus)) : whole_by_counting(cpus);
  }

  /// The lowest of `cpus` on each core.
  Set lowest_of_each_core(topolet_set cpus) const {
    std::vector<bool> seen(core_count(), false);
    Set lowest;
    for_each_index(cpus, [&](std::uint32_t cpu) {
      const std::uint32_t core = core_of(cpu);
      if (core == TOPOLET_NONE || seen[core]) return;
      seen[core] = true;
      lowest.insert(cpu);
    });
    return lowest;
  }

 private:
  /// The cores that have a thread at this distance from their first one.
  struct Siblings {
    std::size_t distance = 0;  ///< in OS indices
    set_words::Words firsts;   ///< the first CPUs of these cores
  };
  /// Machines have a few such distances: siblings are numbered side by side, or in rows.
  static constexpr std::size_t kMostDistances = 8;

  void add_thread(std::uint32_t core, std::uint32_t cpu) {
    if (core == first_by_core_.size()) {
      first_by_core_.push_back(cpu);
      return set_words::insert(firsts_, cpu);
    }
    if (cpu <= first_by_core_[core]) is_regular_ = false;
    if (!is_regular_) return;
    const std::size_t distance = cpu - first_by_core_[core];
    auto siblings = std::find_if(siblings_.begin(), siblings_.end(),
                                 [distance](const Siblings& known) { return known.distance == distance; });
    if (siblings == siblings_.end()) siblings = siblings_.insert(siblings_.end(), {distance, {}});
    set_words::insert(siblings->firsts, first_by_core_[core]);
    is_regular_ = siblings_.size() <= kMostDistances;
  }

  /// Many cores at a time.
  Set whole_by_siblings(set_words::WordsView cpus) const {
    set_words::Words complete = firsts_;
    set_words::intersect(complete, cpus);
    for (const Siblings& siblings : siblings_) {
      for (std::size_t i = 0; i < std::min(complete.size(), siblings.firsts.size()); ++i) {
        const std::uint64_t present = set_words::word_at(cpus, i * 64 + siblings.distance);
        complete[i] &= ~siblings.firsts[i] | present;
      }
    }
    set_words::Words whole = complete;
    for (const Siblings& siblings : siblings_) {
      for (std::size_t i = 0; i < std::min(complete.size(), siblings.firsts.size()); ++i) {
        set_words::unite_word(whole, i * 64 + siblings.distance, complete[i] & siblings.firsts[i]);
      }
    }
    return Set(std::move(whole));
  }

  Set whole_by_counting(topolet_set cpus) const {
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

  std::vector<std::uint32_t> core_by_cpu_;      ///< by OS index
  std::vector<std::uint32_t> threads_by_core_;  ///< how many
  std::size_t threads_per_core_ = 1;
  std::size_t most_threads_ = 1;
  bool sizes_differ_ = false;
  std::vector<std::uint32_t> first_by_core_;  ///< the lowest CPU
  set_words::Words firsts_;                   ///< the same CPUs
  std::vector<Siblings> siblings_;            ///< of all other CPUs, if is_regular_
  bool is_regular_ = true;
};

/// CoreMap::threads_per_core(), where nothing else of a CoreMap is needed.
inline std::size_t threads_per_core(const topolet_topology& topology) { return CoreMap(topology).threads_per_core(); }

}  // namespace topolet::sdk
