#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/handlers/handler_deps.hpp"
#include "core/operations/operation.hpp"

namespace topolet::engine {

/// Handles one StartContainer: waits until the container's CPUs are set and other containers have left them, has it
/// started, and then reads back where the container runs. Where a process waits for that, the kernel is told where it
/// and the others run, as the runtime changes nobody meanwhile. Lives as long as its operation.
class StartContainer : public std::enable_shared_from_this<StartContainer> {
 public:
  static void handle(const HandlerDeps& deps, std::shared_ptr<operations::TargetOperation> operation);

 private:
  StartContainer(const HandlerDeps& deps, std::shared_ptr<operations::TargetOperation> operation)
      : deps_(deps), operation_(std::move(operation)), container_id_(operation_->target()) {}

  void wait_for_turn();
  void ask_runtime();
  void reject_unless_gone();
  std::optional<Error> why_not_placed(const std::vector<operations::Sandbox>& sandboxes,
                                      const std::vector<operations::ContainerInfo>& containers) const;
  bool has_process_in_sight() const;
  void clear_for_process();
  void place_process();
  void wait_for_neighbours(const Status& turn_status);
  void retry_without_allocation();
  void commit_requested(const Status& neighbours_gone);
  void admit();
  void on_outcome(const operations::Outcome& outcome);
  void end_turn();
  void answer();
  void settle();
  void look_for_its_cgroup();
  void reject(const Error& why);
  const Allocation* allocation() const;
  placement::ContainerKey key() const;

  const HandlerDeps& deps_;
  const std::shared_ptr<operations::TargetOperation> operation_;
  std::string container_id_;
  bool has_reconciled_ = false;  ///< whose container it is
  bool was_started_before_ = false;
  ContainerQueues::OperationDone operation_done_;
};

}  // namespace topolet::engine
