// The one writer of the ledger: every change goes through here, as the transition of an event.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/observer.hpp"
#include "core/engine/state/record_again.hpp"
#include "core/engine/state/writer.hpp"
#include "core/placement/placement_rules.hpp"

namespace topolet::engine {

/// Lives on the loop's thread, and asserts it, but for what says otherwise.
class Committer {
 public:
  struct Deps {
    Loop& loop;
    store::Store& store;
    Writer::Options writer_options;
    const placement::PlacementRules& rules;
    Clock clock;
    Log& log;
  };
  Committer(Deps deps, Ledger ledger);

  /// As it is after every event so far, written or not.
  const Ledger& ledger() const { return ledger_; }
  const placement::PlacementRules& rules() const { return deps_.rules; }
  /// Returns the time by the clock that events are dated with.
  std::chrono::milliseconds wall_time() const { return deps_.clock.wall(); }
  bool degraded() const { return writer_.degraded(); }
  /// Returns why it is degraded; empty if it is not.
  const std::string& degraded_because() const { return writer_.degraded_because(); }
  /// When and why the database was begun anew, or else opened again, last; empty if it never was.
  const std::string& reopened_because() const { return reopened_because_; }

  /// The ledger changes at once. `then` runs later, when this and all before it is written and the observers have heard
  /// of it, or the store takes too long for that: only then may anything leave the daemon because of it.
  ///
  /// Urgency::kSoon is for what the runtime has done and would tell again after a restart, so that nothing has to wait
  /// until it is written.
  void commit(const Event& event, Urgency urgency, std::function<void()> then = {});
  void commit(const Event& event, std::function<void()> then = {}) { commit(event, Urgency::kNow, std::move(then)); }

  /// Returns the number of times that another set became desired for a container whose create may be under way. Any
  /// thread.
  std::uint64_t changes_of_pending() const { return changes_of_pending_; }

  /// `then` runs as if an event that changes nothing were committed.
  void when_durable(std::function<void()> then) { when_durable(Urgency::kNow, std::move(then)); }
  /// `then` runs once the ledger of that generation is durable: at once if it is.
  void when_durable(std::uint64_t generation, std::function<void()> then);

  /// Sets how the memory is measured that containers leave behind.
  void set_measure_memory(MeasureMemory measure) { measure_memory_ = std::move(measure); }

  /// `observer` must outlive the last transition.
  void subscribe(Observer& observer) { observers_.push_back(&observer); }

  /// Writes what is left and ends; nobody is told any more. False as Writer::stop() returns it.
  bool stop() { return writer_.stop(); }

 private:
  void when_durable(Urgency urgency, std::function<void()> then);
  void publish(const Transition& transition, const std::function<void()>& then);
  void log(const Transition& transition) const;
  Writer::Rewrite rewrite(const store::FileLoss& loss);
  void on_reopened(const Writer::Reopened& reopened);
  void note_written(std::uint64_t number);

  const Deps deps_;
  Ledger ledger_;
  std::vector<Observer*> observers_;
  std::uint64_t durable_generation_;
  std::atomic<std::uint64_t> changes_of_pending_{0};
  MeasureMemory measure_memory_;
  std::string reopened_because_;
  std::deque<UnwrittenTransition> unwritten_;
  Writer writer_;
};

}  // namespace topolet::engine
