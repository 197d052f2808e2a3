// Computes what happens to a container's CPUs when it ends, and to kept CPUs when other containers come.
#pragma once

#include <chrono>
#include <string_view>

#include "core/engine/state/draft.hpp"
#include "core/engine/state/events.hpp"
#include "core/placement/placement_rules.hpp"

namespace topolet::engine {

/// Each function writes down in the draft what changes. Ledger, rules and draft must outlive it.
class EndTransitions {
 public:
  EndTransitions(const Ledger& ledger, const placement::PlacementRules& rules, std::chrono::milliseconds now,
                 Draft& draft)
      : ledger_(ledger), rules_(rules), now_(now), draft_(draft) {}

  void exit(const event::Exited& event);
  /// Notes that the container is created, or was found. The containers that a sandbox has had matter only if it has
  /// several. CPUs kept for an init container before it become free.
  void note_made(const placement::Workload& workload);

 private:
  void note_waiting(const event::Exited& event, const Allocation& ended, bool comes_back);

  const Ledger& ledger_;
  const placement::PlacementRules& rules_;
  const std::chrono::milliseconds now_;
  Draft& draft_;
};

/// Returns true if its CPUs are kept for its next attempt when it ends. If not, nobody needs to ask for its exit code.
/// One that was removed before it was started has no next attempt that would miss them.
bool keeps_cpus_at_end(const Allocation& allocation, const placement::PlacementRules& rules,
                       std::string_view cause = "exited");

/// Returns true for a container of whole CPUs that shares, as there were none for it alone: its next attempt has some
/// before others.
bool waits_for_cpus(const Allocation& allocation, const placement::PlacementRules& rules);

}  // namespace topolet::engine
