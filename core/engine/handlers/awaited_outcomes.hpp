#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <utility>

#include "core/base/clock.hpp"
#include "core/operations/operation.hpp"

namespace topolet::engine {

/// Gives up on outcomes of admitted operations that do not come: a front may lose its other side without hearing of it.
/// All functions are the loop's; what await() returns may be called on any thread.
class AwaitedOutcomes {
 public:
  AwaitedOutcomes(Clock clock, std::chrono::milliseconds patience) : clock_(std::move(clock)), patience_(patience) {}

  /// Returns the function that a front is given. `then` runs once: with the outcome, on the front's thread; or, where
  /// none has come within `patience`, with kUnknown and DEADLINE_EXCEEDED from expire(). An outcome that comes later is
  /// ignored.
  operations::OnOutcome await(operations::OnOutcome then);
  void expire();
  /// Lets go of the operations that are awaited, at the end.
  void drop() { entries_.clear(); }

 private:
  struct Awaited;
  struct Entry {
    std::chrono::steady_clock::time_point expires;
    std::shared_ptr<Awaited> awaited;
  };

  const Clock clock_;
  const std::chrono::milliseconds patience_;
  std::deque<Entry> entries_;  ///< in the order of `expires`
};

}  // namespace topolet::engine
