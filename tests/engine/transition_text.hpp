// A transition as short text, for tables of what an event changes.
#pragma once

#include <string>
#include <vector>

#include "core/engine/state/transition.hpp"

namespace topolet::engine {

/// One line for each change, remark, pod, repeated denial and for the pool, in this order. A change names the fields
/// that differ, as "field before>after", then [its audit] and (its outcome):
///   "a: phase created>running, since 1>1000"
///   "b: new cpus >0-1, … [placed instead of 3] (bound)"
///   "c: over: exited"
/// The generation, which comes with every change, is left out, and so are verdicts and reasons.
std::vector<std::string> describe(const Transition& transition);

}  // namespace topolet::engine
