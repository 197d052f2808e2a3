#include "core/daemon/holds.hpp"

#include <utility>
#include <vector>

namespace topolet {

Plan plan_over_holds(Room& room, const Workload& workload, const Placer::Terms& terms) {
  const Ledger& ledger = room.bookings.ledger();
  Plan plan = room.placer.plan(ledger, workload, terms);
  if (!plan.lacks_cpus()) return plan;
  std::vector<ContainerKey> kept = room.bookings.crashed();
  if (const Holding* own = ledger.find_crashed(workload.key); own != nullptr) std::erase(kept, own->workload.key);
  if (kept.empty()) return plan;

  Ledger trial = ledger;
  for (const ContainerKey& key : kept) trial.release(key);
  if (room.placer.plan(trial, workload, terms).lacks_cpus()) return plan;

  // The newest first: who failed last is the likeliest to come back.
  for (auto key = kept.rbegin(); key != kept.rend(); ++key) {
    Ledger with = trial;
    with.put(*ledger.find(*key));
    if (room.placer.plan(with, workload, terms).lacks_cpus()) {
      room.bookings.release(*key, "yielded");
    } else {
      trial = std::move(with);
    }
  }
  return room.placer.plan(ledger, workload, terms);
}

void book_moves(Room& room, const Plan& plan) {
  for (const Move& move : plan.moves) {
    const Holding& before = *room.bookings.ledger().find(move.workload.key);
    room.bookings.place(move.workload, move.decision, "re-placed",
                        {.home = home_of(before, *room.placer.topology()), .came = before.came});
  }
}

void expire_holds(Room& room) {
  const Ledger& ledger = room.bookings.ledger();
  for (const ContainerKey& key : room.bookings.crashed()) {
    const Holding* holding = ledger.find(key);
    if (room.clock.wall() - holding->crashed_since < room.placer.rules().crash_hold) return;
    room.bookings.release(key, "crash-hold");
  }
}

}  // namespace topolet
