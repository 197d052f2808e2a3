// Reads the ledger from the store at the start.
#pragma once

#include <string>

#include "core/base/result.hpp"
#include "core/engine/state/cpu_inventory.hpp"
#include "core/engine/state/ledger.hpp"
#include "store/store.hpp"

namespace topolet::engine {

struct LoadedLedger {
  Ledger ledger;
  Status status;                     ///< why it cannot be read
  bool has_decisions = false;        ///< there were some, ever
  CpuSet arrived_cpus = {};          ///< that came online, or were allowed, while no daemon ran
  std::string told_of_kubelet = {};  ///< the reason code of the newest row about the kubelet's CPU manager
};

/// The ledger as of the newest commit that the store has, on a machine with `cpus`.
LoadedLedger load_ledger(store::Store& store, CpuInventory cpus);

/// Returns why the store may not know the containers that topolet has created; empty if it does.
std::string why_creates_are_unknown(const LoadedLedger& loaded, const store::OpenReport& report);

}  // namespace topolet::engine
