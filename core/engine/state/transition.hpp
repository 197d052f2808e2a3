// The change of the ledger that one event causes: committed whole or not at all. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/placement/verdicts.hpp"

namespace topolet::engine {

/// The CPUs topolet deals in. Sets as in LedgerView.
struct LedgerRules {
  CpuSet allowed;
  CpuSet reserved;
  CpuSet isolated;
  CpuSet outside = {};  ///< held by something that is no container; nobody else's while it is

  friend bool operator==(const LedgerRules&, const LedgerRules&) = default;
};

/// What the audit says of a decision, beside the allocation that it made.
struct Audit {
  std::string event;  ///< as in the table `decided`: placed, re-placed, resized…
  std::string reason;
  NodeSet nodes = {};  ///< of the candidate that won
  std::optional<Verdicts> verdicts = {};
};

/// What the runtime answered, or what became of the container, as in the table `outcome`.
struct Outcome {
  std::string state;  ///< bound, refused, in_doubt, timed_out, crashed
  Code code = Code::kOk;
  std::string message = {};
};

/// What happens to one allocation.
struct Change {
  std::optional<Allocation> before;
  std::optional<Allocation> after;
  std::optional<Audit> audit;              ///< it is a decision of its own; `after` has the number
  std::optional<Outcome> outcome;          ///< of the decision that it is held by
  std::optional<std::int64_t> supersedes;  ///< with `audit`: the decision in whose place it is
  std::string cause;  ///< why it ended, where there is no `after`; empty if another's decision supersedes its own
};

/// An event that changes no allocation: a denial, a drift, a gap.
struct Remark {
  Audit audit;
  std::int64_t decision = 0;
  std::optional<Allocation> about;  ///< whom it is about; of a denial: what was asked for
};

struct PodChange {
  std::string sandbox_id;
  std::optional<Pod> after;  ///< none: forgotten
};

/// One more of a denial that was audited before.
struct RepeatedDenial {
  std::int64_t decision = 0;
};

struct Transition {
  std::chrono::milliseconds at{};  ///< wall clock
  std::uint64_t generation = 0;    ///< the ledger's from then on
  std::int64_t next_decision = 0;  ///< the number of the next decision
  std::vector<Change> changes;     ///< in the order in which the audit tells them
  std::vector<Remark> remarks;
  std::vector<PodChange> pods;
  std::vector<RepeatedDenial> repeated;
  std::optional<LedgerRules> rules;  ///< where the machine changed
  CpuSet pool_before;
  CpuSet pool;
  bool records_pool = false;  ///< the pool is written though it is the same: a daemon has begun
  bool undoes = false;        ///< what the pool gains by it was in the pool before

  bool is_nothing() const {
    return changes.empty() && remarks.empty() && pods.empty() && repeated.empty() && !rules && !records_pool;
  }
};

}  // namespace topolet::engine
