// How much of the machine's memory BestEffort containers may use. Plans only.
#pragma once

#include <cstdint>
#include <optional>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// A BestEffort container is not bound to less: the kernel would do nothing for it but reclaim.
constexpr std::int64_t kLeastMemoryHigh = std::int64_t{64} << 20;

/// Plans for the current state of `ledger` and `placer`, which must outlive it. What is left over is `percent` of the
/// machine's memory, less what all others have requested; each BestEffort container that runs may use an equal part of
/// it, in whole MiB.
class BestEffortMemoryPlanner {
 public:
  BestEffortMemoryPlanner(const Ledger& ledger, const Placer& placer) : ledger_(ledger), placer_(placer) {}

  /// Returns the next step; nothing if there is none. `percent`: none where their memory is not to be bound.
  /// `may_step`: the last step was long enough ago; without, only what is taken back is planned. A part that has
  /// changed by less than a twentieth stays as it is.
  std::optional<event::BestEffortMemoryShared> next(std::optional<std::uint32_t> percent, bool may_step) const;

 private:
  std::optional<event::BestEffortMemoryShared> lifted(bool of_all) const;
  std::optional<event::BestEffortMemoryShared> shared(std::uint32_t percent) const;
  std::int64_t requested_by_others() const;

  const Ledger& ledger_;
  const Placer& placer_;
};

/// Returns the memory of all NUMA nodes; nothing where that of one is not known.
std::optional<std::int64_t> memory_of(const topology::Topology& machine);

}  // namespace topolet::engine
