// Takes back moves that containers could have done without, and that do not come about.
#pragma once

#include "core/engine/converge/mover.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// A container that was moved for its own good, or for another's, and does not leave the CPUs that it had, goes back
/// there: nobody else has these yet. Which ones that are, the ledger says (Allocation::moved_from), so that a daemon
/// which starts again goes on with it. Lives on the loop's thread.
class MoveWithdrawals {
 public:
  struct Deps {
    Loop& loop;
    Committer& committer;
    Mover& mover;
  };

  explicit MoveWithdrawals(const Deps& deps) : deps_(deps) {}
  MoveWithdrawals(const MoveWithdrawals&) = delete;
  MoveWithdrawals& operator=(const MoveWithdrawals&) = delete;

  /// To be called once, when it is known what runs: there may be moves of the daemon before.
  void begin();
  /// To be called for every transition from then on, after the Mover has heard of it.
  void on_durable(const Transition& transition);

 private:
  /// A move of a container. The origin tells it from a later one.
  struct Watched {
    placement::ContainerKey key;
    MovedFrom from;
  };

  void watch(const Watched& watched);
  const Allocation* find(const Watched& watched) const;
  void end(const Watched& watched, const Status& taken);
  bool is_needed(const MovedFrom& from) const;

  const Deps deps_;
};

}  // namespace topolet::engine
