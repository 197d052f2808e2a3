// What all plans have in common for a container that could stay where it is: it moves only if no policy minds.
#pragma once

#include <cstdint>
#include <optional>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// The policies' present plan for such a container.
struct BetterPlace {
  std::optional<Plan> plan;  ///< to where it is clearly better off, if there is such a place
  bool lacks_votes = false;  ///< there is no plan because a policy lost its vote, and might have been against it
};

/// Returns true if nothing is under way for the container: it runs, or is about to, where it should be.
bool is_at_rest(const Allocation& allocation);

/// Returns true if the container asks for devices, or policies say that it uses some.
bool has_devices(const placement::Workload& workload);

/// Returns true if a policy would rather have the container where it is now than where `plan` has it: it scores that
/// place by more than `tolerance` below, or is not followed there as far as here. `workload` and `constraints`: of the
/// plan. Nothing if a policy lost its vote over that.
std::optional<bool> do_policies_mind(const Ledger& ledger, const Placer& placer, const Allocation& before,
                                     const placement::Workload& workload, const Plan& plan,
                                     Placer::Constraints constraints, std::int32_t tolerance);

}  // namespace topolet::engine
