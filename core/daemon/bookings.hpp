// The ledger with its two shadows: the store, which mirrors and audits every change, and the lanes, which bring every
// change to the containers it moves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/cri/call.hpp"
#include "core/cri/requests.hpp"
#include "core/daemon/journal.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/lanes.hpp"
#include "core/placement/ledger.hpp"
#include "core/plugin/happenings.hpp"
#include "store/store.hpp"

namespace topolet {

/// What a decision does not say of a holding.
struct Kept {
  CpuSet leaving = {};  ///< of what is withheld, what is so only until the container has left it
  std::optional<Home> home = {};
  CpuSet came = {};
};

/// All changes of who holds what go through here, so that ledger, store and lanes never part. One thread.
class Bookings {
 public:
  struct Parts {
    Ledger ledger;
    Journal& journal;
    Lanes& lanes;
    Clock clock;
    Log& log;
    /// Hears of containers that the runtime has: of each change once it is booked, before a release. May be empty.
    std::function<void(Happening::Kind, const Holding&)> happened = {};
    /// Hears that the pool has more CPUs, as somebody gave some back. May be empty.
    std::function<void()> freed = {};
  };
  explicit Bookings(Parts parts);

  const Ledger& ledger() const { return ledger_; }

  /// Takes the live rows of an earlier run in and goes on from its generation. What was bound stays bound, the rest is
  /// in doubt.
  void load(const std::vector<LiveRow>& rows, std::uint64_t generation);

  /// Books a decision in the place of what the same key held, or an earlier attempt of it that failed, and writes it as
  /// pending. Returns the container ids that must be settled before anything may run on the new CPUs.
  std::vector<std::string> place(const Workload& workload, const Decision& decision, std::string_view event,
                                 Kept kept = {});
  /// The same for a container that the runtime has already, as it is or as it is to be.
  std::vector<std::string> place_bound(const Workload& workload, const Decision& decision, std::string_view event,
                                       const ContainerInfo& container);
  /// Ends the withholding of CPUs that a container has left by now. `why` it was moved.
  void let_go_of_old_cpus(const ContainerKey& key, const std::string& why);
  /// Puts a holding back as it was before a change that the runtime refused.
  void restore(const Holding& before, const std::string& why);

  /// A denial: a row of its own, or one more on the count of the same denial before.
  void deny(const Workload& workload, const Decision& decision);
  /// An event that changes no holding, such as drift.
  void remark(const Holding& holding, std::string_view event, const std::string& reason);

  /// The three answers to a create. `sent`: the cpuset that the create carried.
  void yes(const ContainerKey& key, const std::string& container_id, const CpusetTarget& sent);
  void no(const ContainerKey& key, const Answer& answer);
  void in_doubt(const ContainerKey& key, const Answer& answer);
  /// A doubtful create turned out to have been made; what it has is not known.
  void found(const ContainerKey& key, const ContainerInfo& container);
  /// A retry takes a doubtful or unfinished holding over.
  void take_over(const ContainerKey& key);
  void time_out(const ContainerKey& key);

  void started(const ContainerKey& key);
  /// Changes what a container asks for, its CPUs staying.
  void resize(const ContainerKey& key, const Demand& demand, const std::string& why);
  /// A container failed: what it holds is kept for its next attempt.
  void crash(const ContainerKey& key, std::int32_t exit_code);
  /// What failed containers hold, the oldest first.
  std::vector<ContainerKey> crashed() const;
  /// The exclusive CPUs that the container last had in an earlier attempt, as far as is known, with what was withheld.
  Placement last_of(const ContainerKey& key) const;
  /// See Holding.
  void note_narrowed(const ContainerKey& key) { ledger_.set_narrowed(key); }
  void note_asked(const ContainerKey& key) { ledger_.set_asked(key); }
  /// Deals in other CPUs from now on; see Ledger::set_rules().
  void set_rules(LedgerRules rules);
  /// Gives everything back. `cause` as in EndedRow.
  void release(const ContainerKey& key, const std::string& cause);

  static CpusetTarget target_of(const Holding& holding) { return {holding.placement.cpus, holding.placement.mems}; }

 private:
  using DecisionCell = std::shared_ptr<std::int64_t>;

  void tell(Happening::Kind kind, const ContainerKey& key) const;
  DecidedRow row_for(const Workload& workload, std::string_view event) const;
  std::vector<std::string> book(Holding holding, DecidedRow row);
  void remember(const Holding& holding);
  /// Where CPUs are there again that shared containers had to leave.
  void send_home();
  void tell_if_freed(const CpuSet& pool_before) const;
  void end(const Holding& holding, const std::string& cause);
  void add_outcome(const Holding& holding, const char* state, const Answer& answer);
  void propagate(const std::vector<ContainerKey>& moved, const CpuSet& pool_before);
  std::vector<std::string> in_the_way(const Holding& holding) const;
  std::int64_t now_ms() const { return clock_.wall().count(); }

  Ledger ledger_;
  Journal& journal_;
  Lanes& lanes_;
  Clock clock_;
  Log& log_;
  const std::function<void(Happening::Kind, const Holding&)> happened_;
  const std::function<void()> freed_;

  struct Denied {
    std::string reason;
    DecisionCell decision;
  };
  std::map<ContainerKey, Denied> denied_;
  std::map<std::pair<std::string, std::string>, Placement> last_;  ///< by pod uid and container name
};

}  // namespace topolet
