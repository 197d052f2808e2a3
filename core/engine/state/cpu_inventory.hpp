// The CPUs there are to be given out. Plain values.
#pragma once

#include "core/base/index_set.hpp"

namespace topolet::engine {

/// The CPUs that topolet may use; the sets mean what they do in LedgerSnapshot.
struct CpuInventory {
  CpuSet allowed;
  CpuSet reserved;
  CpuSet isolated;
  CpuSet occupied = {};  ///< used by something other than containers; only `occupy` of core/simulate sets it

  friend bool operator==(const CpuInventory&, const CpuInventory&) = default;
};

}  // namespace topolet::engine
