// Computes the changes of all containers when the machine, the daemon or the clock changes: a part of
// compute_transition().
#pragma once

#include <chrono>

#include "core/engine/state/capacity_transitions.hpp"
#include "core/engine/state/draft.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// Each function writes down in the draft what changes. The ledger and the draft must outlive it.
class MachineTransitions {
 public:
  MachineTransitions(const Ledger& ledger, std::chrono::milliseconds now, Draft& draft)
      : ledger_(ledger), now_(now), draft_(draft) {}

  void change(const event::MachineChanged& event);
  void restart(const event::Restarted& event);
  void set_clock(const event::ClockSet& event);

 private:
  /// Sets since when containers wait for CPUs of their own, each to `moved(since)`.
  template <class Move>
  void move_waiting(Move moved);
  void note_arrived(const CpuSet& arrived);

  const Ledger& ledger_;
  const std::chrono::milliseconds now_;  ///< wall clock
  Draft& draft_;
  CapacityTransitions capacities_{ledger_, now_, draft_};
};

}  // namespace topolet::engine
