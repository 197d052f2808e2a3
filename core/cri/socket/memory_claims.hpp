// The knowledge that the guards of one process have of each other's connections.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>

#include "core/base/mutex.hpp"

namespace topolet::cri {

/// All sockets of a process fill one memory, and the guard of each sees and ends its own connections only. So that
/// nobody's connection goes for what came in on another socket, each says what it has, and the heaviest of all goes
/// first. Any thread.
class MemoryClaims {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Claim {
    double heaviest = 0;  ///< the weight of its heaviest connection, see Connections::heaviest(); 0: it has none
    std::size_t freed_lately = 0;  ///< what the connections had that it has ended a moment ago
  };

  /// Takes the place of what the same guard told before. Counts for a second.
  void tell(const void* guard, const Claim& claim, Time now);
  /// It has ended.
  void forget(const void* guard);
  /// Returns the claim of all others: the heaviest connection, and the bytes that they have freed together.
  Claim of_others(const void* guard, Time now) const;

 private:
  struct Told {
    Claim claim;
    Time at;
  };
  mutable Mutex mutex_;
  std::map<const void*, Told> told_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::cri
