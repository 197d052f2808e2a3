// What happens to pods and containers after they are made: start, update, stop, remove.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/cri/call.hpp"
#include "core/daemon/room.hpp"

namespace topolet {

/// Lives on the loop's thread.
class Lifecycle {
 public:
  explicit Lifecycle(Room& room) : room_(room) {}

  /// Brings runtime and ledger together and then runs `then`, whether or not the runtime could be asked.
  std::function<void(std::function<void()> then)> reconcile;

  void run_pod_sandbox(const std::shared_ptr<Call>& call);
  void stop_pod_sandbox(const std::shared_ptr<Call>& call);
  void remove_pod_sandbox(const std::shared_ptr<Call>& call);
  void start_container(const std::shared_ptr<Call>& call);
  void stop_container(const std::shared_ptr<Call>& call);
  void remove_container(const std::shared_ptr<Call>& call);
  void update_container_resources(const std::shared_ptr<Call>& call);

  /// The runtime says that a container has exited. One that had CPUs of its own is asked how before they are freed:
  /// those of one that failed are kept for its next attempt. `done` runs once that is booked, or could not be asked.
  void exited(const std::string& container_id, std::function<void()> done);
  void exited_with(const std::string& container_id, std::int32_t exit_code);
  /// A container was stopped or removed, or is gone.
  void ended(const std::string& container_id, const std::string& cause);
  /// A plugin wishes that a container be placed anew. What the kubelet bound, or what is not settled, stays.
  void re_place(const ReplacementWish& wish);

  /// Places those anew who hold CPUs that are not `allowed`.
  void leave_all_but(const CpuSet& allowed);
  /// Before the CPUs change: who shares less than a candidate has was narrowed, even if all others go.
  void note_who_is_narrowed(const CpuSet& allowed, const std::vector<Candidate>& candidates);
  /// Lets those who share use what their candidate has more than `before`, when other CPUs were allowed; and take_up().
  void take_up_what_came(const CpuSet& allowed_before, const std::vector<Candidate>& before);
  /// Gives containers what they had to do without, as far as it can be had by now: those with CPUs of their own what
  /// they lack of them, the CPUs they were given if they are worse off elsewhere, and the idle siblings that policies
  /// want for them; those who share, the policies' word on what more of the pool is open to them.
  void take_up();
  /// Both for one that could not be moved at the time, as its create was under way or in doubt.
  void catch_up(const ContainerKey& key);

  /// Reads back what a container that runs may run on; a difference is audited and repaired.
  void verify(const std::string& container_id);
  /// The same without asking the runtime, where the kernel can be read and agrees.
  void glance(const std::string& container_id);

 private:
  /// Forwards untouched and answers; `then` runs in between, on the loop.
  void pass(const std::shared_ptr<Call>& call, std::function<void(const Answer&)> then);
  void pass_unread(const std::shared_ptr<Call>& call);
  void start_known(const std::shared_ptr<Call>& call, const std::string& id);
  void started(const std::shared_ptr<Call>& call, const std::string& id, const Answer& answer);
  void release_sandbox(const std::string& sandbox_id, const std::string& cause);
  std::string full_id(const std::string& container_id) const;
  std::string full_sandbox_id(const std::string& sandbox_id) const;
  void stopped(const std::shared_ptr<Call>& call, const std::string& container_id);
  bool keeps_cpus_after_crash(const Holding& holding) const;
  /// What was booked for a container that runs already.
  struct Booked {
    std::vector<std::string> in_the_way;  ///< containers that must be settled first
    std::string reason;
  };
  Result<Booked> book_update(const Holding& before, const UpdateRequest& update);
  Result<Booked> book_resize(const Holding& before, const Workload& workload);
  Result<Booked> book_new_size(const Holding& before, const Workload& workload, std::uint32_t cpus);
  Booked book_move(const Holding& before, const Workload& workload, Plan plan, std::string_view event);
  void updating(const std::shared_ptr<Call>& call, const std::string& id, const UpdateRequest& update,
                const Lanes::OperationDone& done);
  void update_as_booked(const std::shared_ptr<Call>& call, const Holding& before, const UpdateRequest& update,
                        const Lanes::OperationDone& done);
  static bool gets_new_size(const Holding& before, const Workload& workload, std::uint32_t cpus);
  /// The holding, with what it does not keep and policies go by, such as the environment, as far as the runtime tells.
  /// Nothing for a container that has ended.
  using Recalled = std::function<void(std::optional<Holding>)>;
  void recall(const ContainerKey& key, Recalled recalled);
  void send_update(const std::shared_ptr<Call>& call, const Holding& before, const Booked& booked,
                   Lanes::OperationDone done);
  Plan plan_anew(const Holding& before, const ReplacementWish& wish) const;
  static bool may_be_moved(const Holding& holding);
  bool holds_what_is_gone(const Holding& holding, const CpuSet& allowed) const;
  void leave_what_is_gone(const ContainerKey& key);
  std::optional<Plan> plan_without(const Holding& before, const CpuSet& allowed) const;
  void take_up(const ContainerKey& key);
  bool might_take_up(const Holding& holding) const;
  bool lacks_cpus(const Holding& holding) const;
  std::optional<Plan> plan_to_take_up(const Holding& before) const;
  std::optional<Plan> plan_home(const Holding& before) const;
  std::optional<std::string> lost_since(const Holding& before, const Plan& home) const;
  std::optional<Plan> plan_where_it_is(const Holding& before) const;
  std::optional<Plan> plan_beside(const Holding& before, const Placement& keep, std::uint32_t count) const;
  std::optional<Plan> plan_alone_again(const Holding& before) const;
  const Candidate* candidate_of(const CpuSet& within) const;
  std::optional<Plan> plan_wider(const Holding& before, const CpuSet& within) const;
  std::optional<Plan> plan_narrower(const Holding& before, const Candidate& candidate) const;
  /// Places a container anew, once nothing else is under way for it: where `plan` says, or not at all.
  using PlanAnew = std::function<std::optional<Plan>(const Holding&)>;
  void move(const Holding& moved, PlanAnew plan);
  void moving(const ContainerKey& key, const PlanAnew& plan_anew, const Lanes::OperationDone& done);
  void move_as_planned(const Holding& before, const PlanAnew& plan_anew, const Lanes::OperationDone& done);
  void let_go_once_settled(const Holding& before, const Booked& booked);
  void take_back(const Holding& before, const Answer& answer);

  Room& room_;
  std::set<std::string> stopping_;  ///< containers that the kubelet is stopping: their exit is no failure
};

}  // namespace topolet
