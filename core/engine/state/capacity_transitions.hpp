// Computes the changes of told capacities: a part of compute_transition().
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/engine/state/draft.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/topology/topology.hpp"

namespace topolet::engine {

/// Each function writes down in the draft what changes. The ledger and the draft must outlive it.
class CapacityTransitions {
 public:
  CapacityTransitions(const Ledger& ledger, std::chrono::milliseconds now, Draft& draft)
      : ledger_(ledger), now_(now), draft_(draft) {}

  void tell(const event::CapacityReported& event);
  void clear(const event::CapacityCleared& event);
  void pass_time();
  void judge(const topology::Topology& topology);
  void set_clock(std::chrono::milliseconds by);

 private:
  void record(std::uint32_t node, std::string reason);

  const Ledger& ledger_;
  const std::chrono::milliseconds now_;  ///< wall clock
  Draft& draft_;
};

}  // namespace topolet::engine
