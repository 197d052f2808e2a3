// The contents of a database that is begun in the place of a lost one.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "core/engine/state/ledger.hpp"
#include "core/engine/state/transition.hpp"
#include "store/store.hpp"

namespace topolet::engine {

/// A transition that waits to be written.
struct UnwrittenTransition {
  std::uint64_t number = 0;         ///< of its submission to the writer
  std::int64_t first_decision = 0;  ///< the number of the next decision before it
  std::shared_ptr<const Transition> transition;
};

/// The ledger as it was before the `unwritten` transitions, which led to it one after the other, as one transition that
/// leads there from nothing: allocations with the numbers that they have, pods, and the denials that are counted on.
/// `why` goes into its reasons.
Transition record_again(const Ledger& ledger, const std::deque<UnwrittenTransition>& unwritten,
                        std::chrono::milliseconds wall_time, const std::string& why);

/// Writes it, also into a database that has some of it, or outdated rows.
Status write_again(store::Store& store, Transition transition);

}  // namespace topolet::engine
