// Cores all of whose threads can be had: what full-pcpus-only gives.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <map>

namespace topolet::numa {

/// Those cores of a machine whose online CPUs are all among some CPUs; each core counts by its own number of threads. A
/// CPU whose core is unknown is a core of its own.
class WholeCores {
 public:
  WholeCores(const topolet_topology& topology, topolet_set among);

  /// Whether the machine has cores of different numbers of threads.
  bool uneven() const { return uneven_; }
  /// All CPUs of these cores.
  const sdk::Set& cpus() const { return cpus_; }
  /// Threads of the largest of them.
  std::size_t most_threads() const { return by_threads_.empty() ? 1 : by_threads_.rbegin()->first; }
  /// Whether some of those inside `part` have just as many CPUs as are wanted.
  bool make_up(std::size_t wanted, topolet_set part) const;

 private:
  bool uneven_ = false;
  sdk::Set cpus_;
  std::map<std::size_t, sdk::Set> by_threads_;  ///< CPUs, by how many threads their cores have
};

/// Whether the CPUs are those of whole cores and no others.
bool are_whole_cores(const topolet_topology& topology, topolet_set cpus);

}  // namespace topolet::numa
