// Brings every container to where the ledger wants it, whatever led there: a create, an update, a move or a repair. No
// container runs on new CPUs before the containers that had them have left.
//
// The room core/engine/converge, namespace topolet::engine: carries the ledger out, by telling the runtime and reading
// the kernel back, and brings the ledger in line with what both of them say (reconciler.hpp). It may include
// core/engine/state and planning; not handlers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/engine/converge/container_queues.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/exits.hpp"
#include "core/engine/converge/footprints.hpp"
#include "core/engine/converge/overlap_watch.hpp"
#include "core/engine/converge/overrule_watch.hpp"
#include "core/engine/converge/stuck_watch.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/committer.hpp"
#include "core/operations/operation.hpp"

namespace topolet::engine {

/// The time that a container waits for others to leave the CPUs that it is to have alone: for a create or a start, and
/// for work in the container's own turn. The latter is short, as two that wait for each other keep both turns
/// meanwhile.
constexpr std::chrono::seconds kNeighboursTimeout{20};
constexpr std::chrono::seconds kNeighboursTimeoutInTurn{3};

/// Lives on the loop's thread.
class Mover final : public Observer {
 public:
  struct Deps {
    Loop& loop;
    Committer& committer;
    CpusetWriter& cpusets;
    Exits& exits;
    std::chrono::milliseconds start_grace;  ///< how long a start that nobody heard of may still be under way
    Clock clock;
    Log& log;
  };
  using Done = std::function<void(const Status&)>;
  /// Plans the new place of a container; returns nothing if it stays.
  using PlanMove = std::function<std::optional<Plan>(const Allocation&)>;
  using WorkloadRecovered = std::function<void(std::optional<Allocation>)>;

  /// Subscribes itself.
  explicit Mover(Deps deps);
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  /// From now on the container is brought to where it should be. `applied`: where it is known to be; none if that must
  /// be found out.
  void open_queue(const std::string& container_id, std::optional<ContainerCpuset> applied);
  /// The same for a container that has just been created where it should be: with `sent`, which is durable, though it
  /// may not be durable yet that it was created.
  void open_created(const std::string& container_id, const ContainerCpuset& sent);
  bool has_queue(const std::string& container_id) const { return queues_.has(container_id); }
  /// Returns the set that the container may be told now, by the last durable transition and the ledger of now: see
  /// agreed_cpuset(). Without files of its cgroup while the runtime refuses these.
  std::optional<ContainerCpuset> sendable(const std::string& container_id) const;
  /// Returns the CPUs that the container may be using, as far as it was told: empty if it has been told nothing.
  CpuSet footprint(const std::string& container_id) const { return footprints_.of(container_id); }
  /// The part of it that this daemon has told the container, or has seen it on.
  CpuSet told(const std::string& container_id) const { return footprints_.told(container_id); }
  /// Commits that a container, which waits for others before it is told anything new, has no more CPUs than this daemon
  /// has told it, and the kernel shows. Nothing while an update of an earlier run may still bring it elsewhere.
  void confirm_whereabouts(const std::string& container_id);
  /// Returns how much longer such an update may come; not above 0: it does not.
  std::chrono::milliseconds late_update_time(const std::string& container_id) const;
  /// Somebody else's operation sends the container a set, which sendable() has returned just now.
  void note_sent(const std::string& container_id, const ContainerCpuset& set);

  // A front of the kind Neighbours::kInAnswer tells those who have to leave the CPUs of a new container with the answer
  // to its create. The mover tells them nothing from begin to end, which come once each; then it sees that they have
  // left.
  void begin_answer(const placement::ContainerKey& created);
  /// Returns what is to be said in the answer, and takes it as sent.
  std::vector<operations::NeighbourUpdate> neighbours_in_answer(const placement::ContainerKey& created);
  void end_answer(const placement::ContainerKey& created);

  /// Notes that the runtime is told `cpus` for a container that is being created, before anybody knows whether it is:
  /// nobody can take them from it meanwhile. Ends with end_answer().
  void note_creating(const placement::ContainerKey& created, const CpuSet& cpus) { creating_[created] = cpus; }

  /// An update that was sent by ContainerRuntime can still be changed: returns what it is to say. CPUs that the
  /// container is not to have any more are left out; none are left if it is to have others altogether.
  ContainerCpuset renew(const std::string& container_id, const ContainerCpuset& sent);
  /// The runtime is told `cpus` in the answer to an update that it carries out by and by, whatever else is decided.
  void note_coming(const std::string& container_id, const CpuSet& cpus);
  /// It has done so, or never will.
  void note_arrived(const std::string& container_id) { coming_.erase(container_id); }

  // While a front waits to admit a start, its runtime may change nobody. Then the kernel is told, and the runtime by
  // the queues, later.

  /// Those that the runtime has created, and that are to start elsewhere than they were told at first.
  enum class Unstarted : std::uint8_t {
    kLeave,     ///< their own starts see to it
    kMayStart,  ///< they may be about to start where they were told
  };
  /// Has all that are still on the exclusive CPUs of the container of `key` leave them. An error names one that cannot
  /// be made to leave, or for which the runtime has something in hand that may bring it there.
  Status clear_in_kernel(const placement::ContainerKey& key, Unstarted unstarted);
  /// Tries that again and again until `timeout` is over.
  void await_clear_in_kernel(const placement::ContainerKey& key, std::chrono::milliseconds timeout, Done done);
  /// Sets the container to `set`, which sendable() has returned just now.
  Status set_in_kernel(const std::string& container_id, const ContainerCpuset& set);
  /// Keeps a container that should not run away from the CPUs that others have not left; not from its last CPUs.
  void keep_apart_in_kernel(const std::string& container_id);

  /// Runs somebody else's operation in the container's turn; see ContainerQueues. False if it is not known.
  bool run_in_turn(const std::string& container_id, ContainerQueues::Needs needs,
                   ContainerQueues::Operation operation) {
    return queues_.run(container_id, needs, std::move(operation));
  }
  /// Called by such an operation that has set the container to `now`, as the kernel confirms. `then` as in commit().
  void report_applied(const std::string& container_id, const ContainerCpuset& now, std::function<void()> then);

  /// Calls back when no other container can still run on the exclusive CPUs of the container of `key`; with an error if
  /// one of them cannot be moved.
  void await_neighbours(const placement::ContainerKey& key, std::chrono::milliseconds timeout, Done done);
  void when_converged(const std::string& container_id, std::chrono::milliseconds timeout, Done done) {
    queues_.when_converged(container_id, timeout, std::move(done));
  }

  /// Moves a container, in its turn, to where `plan` says, if anywhere. `needs`: kConverged, unless it must leave its
  /// CPUs in any case.
  void move(const placement::ContainerKey& key, ContainerQueues::Needs needs, PlanMove plan);
  /// Something is under way for the container, or waits for its turn.
  bool is_busy(const std::string& container_id) const { return queues_.is_busy(container_id); }

  /// Adds to the allocation what policies use but is never stored, such as the environment, if the runtime reports it.
  /// Nothing for a container that has ended.
  void recover_workload(const placement::ContainerKey& key, WorkloadRecovered done);

  /// Reads back what a container that runs may run on; a difference is audited and repaired.
  void verify(const std::string& container_id) { verify(container_id, OverruleWatch::Check::kLater, {}); }
  /// The same for one that has just been started. `seen` is called before that, when the runtime has said which process
  /// is the container's.
  void verify_start(const std::string& container_id, const std::function<void()>& seen = {}) {
    verify(container_id, OverruleWatch::Check::kFirst, seen);
  }
  /// The same without asking the runtime, where the kernel can be read and agrees.
  void verify_in_kernel(const std::string& container_id);

  /// The first check of one that runs, after a start whose end no daemon has seen: the kernel has it on `observed`, and
  /// nobody has told it anything since. True if another hand has put it there.
  bool note_first_check(const std::string& container_id, const CpuSet& observed) {
    return overrule_watch_.note_stray(container_id, observed, OverruleWatch::Check::kUnseen);
  }

  /// Notes that an update of an earlier run of the daemon may still be under way, and bring the container to `cpus`:
  /// for a while, nobody gets those of them that it is to leave.
  void note_late_update(const std::string& container_id, const CpuSet& cpus) { late_updates_[container_id] = cpus; }

  /// Notes where the kernel has it, if that can be read.
  void check_in_kernel(const std::string& container_id);

  /// Does the same for all that run, and tells each container that has fewer CPUs than it should its CPUs anew.
  void verify_all_in_kernel();

  /// Containers that were seen on CPUs which another one has alone, and have not left them yet.
  std::vector<Overlap> overlaps() const { return overlap_watch_.overlaps(); }

  /// Tries, of those that did not leave CPUs, some again: see StuckWatch.
  void try_stuck();

  /// Returns true if a start of it may still be under way without anybody waiting for it.
  bool may_still_be_starting(const Allocation& allocation) const;
  /// Asks the runtime about starts whose callers no longer wait.
  void resolve_unfinished_starts();

  void on_durable(const Transition& transition) override;

 private:
  void apply(const std::string& container_id, const ContainerCpuset& target, std::function<void(ApplyResult)> done);
  void on_cpuset_written(const std::string& container_id, const ContainerCpuset& target, const WriteResult& result,
                         const std::function<void(ApplyResult)>& done);
  std::chrono::milliseconds late_update_time(const std::string& container_id, const CpuSet& cpus) const;
  void on_converged(const std::string& container_id, const ContainerCpuset& applied);
  std::optional<ContainerCpuset> sendable(const std::string& container_id, const ContainerCpuset& durable) const;
  void note_unnoticed(const placement::ContainerKey& key);
  bool is_told_in_answer(const placement::ContainerKey& key) const;
  bool is_blocked(placement::ContainerKey key);
  void confirm_cpus(const std::string& container_id, const placement::ContainerKey& key, const CpuSet& cpus);
  void check_for_stuck(const std::string& container_id);
  void check_for_overlap(const std::string& container_id, const CpuSet& observed);
  /// Until when a container waits for others.
  struct Patience {
    std::chrono::steady_clock::time_point deadline;
    bool is_long = false;  ///< whoever has not answered by then does not
  };
  void await_neighbours_until(placement::ContainerKey key, Patience patience, Done done);
  void give_up_on_neighbours(const placement::ContainerKey& key, const Patience& patience);
  std::string narrowed_text(const std::string& container_id, const ContainerCpuset& target) const;
  void mark_memory_high(const Allocation& allocation, const ContainerCpuset& told) const;
  ApplyResult leave_to_kernel(const Allocation& allocation, const ContainerCpuset& target) const;
  ApplyResult note_failed(const Allocation& allocation, const ContainerCpuset& target, const Error& error);
  void try_stuck(const std::string& container_id, const ContainerQueues::OperationDone& done);
  void begin_move(const placement::ContainerKey& key, const PlanMove& plan, const ContainerQueues::OperationDone& done);
  void commit_move(const Allocation& before, const PlanMove& plan, const ContainerQueues::OperationDone& done);
  void verify(const std::string& container_id, OverruleWatch::Check check, const std::function<void()>& seen);
  void on_inspected(const std::string& container_id, const operations::ContainerDetail& detail, bool is_newest,
                    OverruleWatch::Check check);
  void note_drift(const std::string& container_id, const CpuSet& observed, const std::string& why,
                  OverruleWatch::Check check);
  /// What the runtime carries out.
  struct Coming {
    CpuSet cpus;
    bool was_there = false;  ///< the kernel had it there before: nobody can see when it is done
  };
  bool may_come_to(const std::string& container_id, const CpuSet& cpus);
  std::optional<Error> obstacle_to_clear(const Allocation& neighbour, const CpuSet& alone, Unstarted unstarted);
  void await_clear_until(placement::ContainerKey key, std::chrono::steady_clock::time_point deadline, Done done);
  ApplyResult note_elsewhere(const std::string& container_id, const ContainerCpuset& target, const Error& error);
  void resolve_unfinished_start(const std::string& container_id);
  void on_squeezed(const Allocation& before, const Allocation& after);
  void drop_container(const Allocation& allocation);
  void unblock_ready();

  const Deps deps_;
  std::map<std::string, ContainerCpuset> desired_;      ///< by container, as durable
  std::set<placement::ContainerKey> in_answer_;         ///< created containers whose neighbours a front tells
  std::set<std::string> told_in_answer_;                ///< containers that an answer has told the set they should have
  std::map<placement::ContainerKey, CpuSet> creating_;  ///< as of note_creating()
  std::map<std::string, Coming> coming_;                ///< by container
  std::set<std::string> blocked_;                       ///< containers whose CPUs others have not left
  std::map<std::string, CpuSet> late_updates_;          ///< by container, as an earlier run of the daemon sent
  const std::chrono::steady_clock::time_point started_at_ = deps_.clock.steady();
  Footprints footprints_;
  OverlapWatch overlap_watch_{{deps_.committer, footprints_, deps_.clock}};
  OverruleWatch overrule_watch_{{deps_.committer, deps_.cpusets, footprints_, deps_.clock}};
  StuckWatch stuck_watch_{{deps_.committer, deps_.cpusets, footprints_, deps_.clock}};
  ContainerQueues queues_;
};

/// Returns true if topolet may change the container's CPUs now.
bool may_be_moved(const Allocation& allocation);

}  // namespace topolet::engine
