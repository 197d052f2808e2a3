// Lets others hear of the transitions that the Committer commits.
#pragma once

namespace topolet::engine {

class Ledger;
struct Transition;

/// Hears of every transition once it is durable, in their order, before whoever caused it goes on.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Called once, before the first transition, with the ledger that the store had.
  virtual void on_loaded(const Ledger& /*ledger*/) {}
  virtual void on_durable(const Transition& transition) = 0;
  /// It is in the database: just before on_durable() of it, or any time later where the store took longer than those
  /// who wait for it do.
  virtual void on_written(const Transition& /*transition*/) {}
  /// The ledger was compared with the runtime for the first time, and all that follows from it was heard.
  virtual void on_reconciled() {}
};

}  // namespace topolet::engine
