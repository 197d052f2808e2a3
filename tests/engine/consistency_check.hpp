// The invariants that hold once nothing is under way any more.
#pragma once

#include <optional>
#include <string>

#include "core/topology/topology.hpp"
#include "tests/engine/engine_under_test.hpp"
#include "tests/support/verifying_runtime.hpp"

namespace topolet::testing {

struct Expected {
  const topology::Topology& machine;
  bool pods_prefer_nodes = false;
  bool cpus_were_gone = false;  ///< who had to do with fewer CPUs may still have to, as others have taken their place
};

/// Returns the first difference, if there is one: ledger, runtime and kernel must say the same of every container,
/// nothing may be held for containers that are gone, every CPU that is not a living container's own must be in the
/// pool, and containers that had to leave CPUs for a while must be back on them.
std::optional<std::string> find_inconsistency(const ObservedLedger& ledger, const VerifyingRuntime& runtime,
                                              const Expected& expected);

/// A container that shares and runs on less than it was given: nobody is disturbed by it, and yet it should not stay
/// so.
std::optional<std::string> find_unexpected_narrowing(const ObservedLedger& ledger, const VerifyingRuntime& runtime);

}  // namespace topolet::testing
