// Computes the changes of containers after observations in the kernel and in the runtime: a part of
// compute_transition().
#pragma once

#include <chrono>
#include <string>

#include "core/engine/state/draft.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// Each function writes down in the draft what changes. The ledger and the draft must outlive it.
class ObservationTransitions {
 public:
  ObservationTransitions(const Ledger& ledger, std::chrono::milliseconds now, Draft& draft)
      : ledger_(ledger), now_(now), draft_(draft) {}

  void note_drift(const event::Drifted& event);
  void note_seen_in_kernel(const event::SeenInKernel& event);
  void note_plugin(const event::SetByPlugin& event);
  void note_stuck(const event::FoundStuck& event);
  void note_loose(const event::CameLoose& event);
  void note_overlap(const event::Overlapped& event);
  void find_foreign(const event::FoundForeign& event);
  void note_confined(const event::PodConfined& event);
  void note_dropped_quota(const event::PodQuotaDropped& event);

 private:
  template <class Value>
  void note_of_pod(const std::string& uid, Value Pod::*what, const Value& value);

  const Ledger& ledger_;
  const std::chrono::milliseconds now_;  ///< wall clock
  Draft& draft_;
};

}  // namespace topolet::engine
