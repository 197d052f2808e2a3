// How much of the pool BestEffort containers leave to others. Plans only.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/engine/planning/placer.hpp"
#include "core/engine/planning/pressure_watch.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/load/load.hpp"

namespace topolet::engine {

/// What was measured longer ago does not narrow anybody.
constexpr std::chrono::seconds kOldestForBestEffort{5};
/// Averages of less are of chance.
constexpr std::chrono::seconds kMeasuredForBestEffort{60};
/// At most one step in so long.
constexpr std::chrono::seconds kBetweenBestEffortSteps{10};
/// BestEffort containers keep so many CPUs of the pool, or all of a smaller one.
constexpr std::size_t kLeastForBestEffort = 2;

/// Plans for the current state of `ledger` and `placer`, which must outlive it. The formula is koordlet's, of the pool
/// alone: `percent` of what its CPUs can do, less what all others use there.
class BestEffortPlanner {
 public:
  BestEffortPlanner(const Ledger& ledger, const Placer& placer) : ledger_(ledger), placer_(placer) {}

  /// What another container's lack of CPUs means for them.
  struct Pressure {
    const Pressed* now = nullptr;  ///< where it runs they lose a tenth of the machine, whatever the formula says
    bool is_remembered = false;    ///< they get nothing back
  };

  /// Returns the next step; nothing if there is none. `percent`: none where BestEffort containers are not to be
  /// narrowed. `may_step`: the last step was long enough ago; without, only what narrows nobody any more is planned.
  std::optional<event::BestEffortNarrowed> next(const load::Load* load, std::optional<std::uint32_t> percent,
                                                bool may_step, const Pressure& pressure) const;
  std::optional<event::BestEffortNarrowed> next(const load::Load* load, std::optional<std::uint32_t> percent,
                                                bool may_step) const {
    return next(load, percent, may_step, Pressure());
  }

 private:
  /// Of the pool, in thousandths of a CPU.
  struct Use {
    std::int64_t capacity_milli = 0;
    std::int64_t others_milli = 0;
  };

  bool has_yielding() const;
  std::optional<event::BestEffortNarrowed> freed(const char* why, const char* code) const;
  std::optional<event::BestEffortNarrowed> step(const load::Load& recent, std::uint32_t percent,
                                                const Pressure& pressure) const;
  std::optional<event::BestEffortNarrowed> yield_to(const Pressed& pressed, std::size_t size,
                                                    const load::Load& recent) const;
  std::size_t one_step() const;
  CpuSet had() const;
  Use use_of(const load::Load& recent) const;
  std::size_t size_after(std::int64_t milli) const;
  CpuSet choose(std::size_t count, const load::Load& recent, const CpuSet& last = {}) const;

  const Ledger& ledger_;
  const Placer& placer_;
};

}  // namespace topolet::engine
