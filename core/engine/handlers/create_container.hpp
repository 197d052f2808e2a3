// The way of one CreateContainer: from the request to the answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/handlers/handler_deps.hpp"
#include "core/operations/operation.hpp"
#include "core/placement/pod_request.hpp"

namespace topolet::engine {

/// Lives as long as its operation: read → decide → commit → wait for the neighbours → admit → commit the outcome. A
/// create that the ledger knows already skips the decision (retry()); one that finds too little free asks the runtime
/// first what has ended meanwhile, and decides again (reconcile_first()).
class CreateContainer : public std::enable_shared_from_this<CreateContainer> {
 public:
  static void handle(const HandlerDeps& deps, std::shared_ptr<operations::CreateOperation> operation);

 private:
  using Time = std::chrono::steady_clock::time_point;

  CreateContainer(const HandlerDeps& deps, std::shared_ptr<operations::CreateOperation> operation)
      : deps_(deps), operation_(std::move(operation)) {}

  void read();
  void note_kubelet();
  void note_kubelet_late();
  void identify();
  Status read_annotations();
  void find_misspelt_annotations(const placement::KnownAnnotations& known);
  void log_warnings() const;
  void admit_foreign();
  void commit_foreign(const operations::Outcome& outcome);

  void start_placing();
  void retry(const Allocation& allocation);
  void decide();
  bool reconcile_first();
  placement::RequestedBeside requested_beside(const std::vector<placement::ContainerKey>& in_sandbox) const;
  std::vector<placement::ContainerKey> superseded(const std::vector<placement::ContainerKey>& in_sandbox) const;
  bool has_earlier_attempt(const std::vector<placement::ContainerKey>& in_sandbox,
                           const std::vector<placement::ContainerKey>& superseded) const;
  std::vector<placement::ContainerKey> making_way(std::vector<placement::ContainerKey> superseded) const;
  Plan plan(const Ledger& ledger, Time began) const;
  std::optional<Plan> plan_with_room(const Ledger& ledger, Time began, const Plan& without) const;
  void deny(Code code, const placement::Decision& decision);

  bool tells_in_answer() const { return operation_->neighbours() == operations::Neighbours::kInAnswer; }
  void wait_for_neighbours();
  void neighbours_timed_out(const Error& error);
  bool may_go_around_neighbours() const;
  void go_around_neighbours();
  void place_without_moves(const Error& error);
  void admit_placed();
  void admit(const ContainerCpuset& durable);
  std::vector<operations::NeighbourUpdate> tell_neighbours();
  void receive(const operations::Outcome& outcome);
  void answer();
  void withdraw(const Error& error, const char* cause);
  void on_outcome(const operations::Outcome& outcome);
  void on_created(const std::string& container_id);
  void answer_when_converged(const std::string& container_id);
  void on_create_failed(const operations::Outcome& outcome);
  void note_refused_class(const Allocation& allocation, const std::string& message);

  const HandlerDeps& deps_;
  const std::shared_ptr<operations::CreateOperation> operation_;
  placement::Workload workload_;
  placement::Demand told_;  ///< as the request has it
  static Time now() { return std::chrono::steady_clock::now(); }
  CreateTimes times() const;

  // When each step began; what is asked again begins again.
  Time taken_up_ = now();
  Time committed_;
  Time durable_;
  Time forwarded_;
  Time answered_;
  ContainerCpuset sent_;
  bool is_sent_as_decided_ = false;        ///< `sent_` was all that it was to have just then
  std::uint64_t changes_before_sent_ = 0;  ///< Committer::changes_of_pending() when `sent_` was read
  bool is_answered_ = false;               ///< set on the I/O thread before the loop hears of the answer
  bool was_in_doubt_ = false;
  bool is_to_note_kubelet_ = false;  ///< that it hands out CPUs, once the container is there
  bool has_reconciled_ = false;
  bool may_make_room_ = true;          ///< others may be moved for a better place of it
  bool waits_for_room_ = false;        ///< some were, and had not left when it began to wait
  std::uint32_t detours_ = 0;          ///< how often it was decided anew, as others did not leave its CPUs
  std::string reason_suffix_;          ///< for the decision's reason
  std::optional<NodeSet> zone_;        ///< where a scheduler has reserved room for it
  bool zone_is_of_pool_ = false;       ///< as in PolicyRequest
  std::vector<std::string> warnings_;  ///< about the pod's annotations; they are in the suffix, too
};

}  // namespace topolet::engine
