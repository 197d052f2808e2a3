// The ledger as a sequence of decisions sees it, written as what has changed since the line before.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/placement/policy.hpp"
#include "core/replay/json_values.hpp"
#include "core/replay/recorded_names.hpp"

namespace topolet::replay {

/// Writes snapshots one after the other. One thread.
class LedgerWriter {
 public:
  /// Returns the differences from the snapshot before; all of it after forget().
  Json changes(const placement::LedgerSnapshot& now, const RecordedNames& names);
  /// All of the last one. What is written next is what differs from it.
  Json whole(const RecordedNames& names) const;
  void forget() { last_ = {}; }

 private:
  placement::LedgerSnapshot last_;
};

/// Reads them again. One thread.
class LedgerReader {
 public:
  /// The snapshot after these changes. Throws InvalidLine, or what the JSON library throws.
  const placement::LedgerSnapshot& apply(const Json& changes);
  void forget() { now_ = {}; }

 private:
  placement::LedgerSnapshot now_;
};

}  // namespace topolet::replay
