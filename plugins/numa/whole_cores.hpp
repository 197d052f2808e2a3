// Cores of which all threads are available, and how many exclusive CPUs would be beside others for want of them.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <map>

namespace topolet::numa {

/// The cores whose online CPUs are all available, each with its own number of threads.
class WholeCores {
 public:
  WholeCores(const topolet_topology& topology, topolet_set available);

  /// Returns true if the machine has cores with different numbers of threads.
  bool sizes_differ() const { return sizes_differ_; }
  /// The CPUs of all whole cores.
  const sdk::Set& cpus() const { return cpus_; }
  /// The number of threads of the largest whole core, at least 1.
  std::size_t most_threads() const { return by_threads_.empty() ? 1 : by_threads_.rbegin()->first; }
  /// Returns true if some of the whole cores inside `within` have exactly `wanted` CPUs together.
  bool add_up_to(std::size_t wanted, topolet_set within) const;
  /// How many of `wanted` CPUs inside `within` have to be on cores that are not available as a whole. A thread that no
  /// core is filled with does not count: it is beside others in any case.
  std::size_t beside_others(std::size_t wanted, topolet_set within) const;

 private:
  bool sizes_differ_ = false;
  std::size_t threads_of_a_core_ = 1;  ///< of any core of the machine; the largest where they differ
  sdk::Set cpus_;
  std::map<std::size_t, sdk::Set> by_threads_;  ///< CPUs, by the number of threads of their cores
};

/// Returns true if the set consists of whole cores.
bool are_whole_cores(const topolet_topology& topology, topolet_set cpus);

/// How many of the `taken` CPUs are on a core with CPUs that are not `available`.
std::size_t count_beside_others(const topolet_topology& topology, topolet_set taken, topolet_set available);

}  // namespace topolet::numa
