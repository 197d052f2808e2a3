#include "core/engine/converge/move_withdrawals.hpp"

#include <chrono>
#include <vector>

namespace topolet::engine {
namespace {

/// The time until it is checked again whether a container is needed where it goes.
constexpr std::chrono::seconds kBetweenChecks{1};

/// Whoever has others make room as it is resized takes that back itself.
bool may_be_withdrawn(const Allocation& allocation) { return allocation.moved_from && !allocation.moved_from->demand; }

}  // namespace

void MoveWithdrawals::begin() {
  std::vector<Watched> moves;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (may_be_withdrawn(allocation)) moves.push_back({key, *allocation.moved_from});
  }
  for (const Watched& move : moves) watch(move);
}

void MoveWithdrawals::on_durable(const Transition& transition) {
  for (const Change& change : transition.changes) {
    if (!change.after || !may_be_withdrawn(*change.after)) continue;
    if (change.before && change.before->moved_from == change.after->moved_from) continue;
    watch({change.after->workload.key, *change.after->moved_from});
  }
}

void MoveWithdrawals::watch(const Watched& watched) {
  const Allocation* now = find(watched);
  if (now == nullptr) return;
  deps_.mover.when_converged(now->container_id, kNeighboursTimeout,
                             [this, watched](const Status& taken) { end(watched, taken); });
}

/// Null if it has left by now, has been taken back, or is placed anew.
const Allocation* MoveWithdrawals::find(const Watched& watched) const {
  const Allocation* now = deps_.committer.ledger().find(watched.key);
  return now != nullptr && now->is_bound() && now->moved_from == watched.from ? now : nullptr;
}

void MoveWithdrawals::end(const Watched& watched, const Status& taken) {
  if (taken || find(watched) == nullptr) return;
  // Who waits for it there decides.
  if (is_needed(watched.from)) return deps_.loop.after(kBetweenChecks, [this, watched] { watch(watched); });
  deps_.committer.commit(
      event::MoveWithdrawn{watched.key, "it could not be moved, and stays where it was: " + taken.error().message});
}

/// Returns true if the container for which it makes room has CPUs that it had.
bool MoveWithdrawals::is_needed(const MovedFrom& from) const {
  if (!from.newcomer) return false;
  const Allocation* newcomer = deps_.committer.ledger().find(*from.newcomer);
  return newcomer != nullptr && newcomer->dedicated_cpus().intersects(from.placement.cpus | from.placement.withheld);
}

}  // namespace topolet::engine
