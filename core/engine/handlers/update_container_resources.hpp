#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/handlers/handler_deps.hpp"
#include "core/operations/operation.hpp"

namespace topolet::engine {

/// The way of one UpdateContainerResources: a resize, or a set of the kubelet's. Lives as long as its operation.
class UpdateContainerResources : public std::enable_shared_from_this<UpdateContainerResources> {
 public:
  static void handle(const HandlerDeps& deps, const std::shared_ptr<operations::UpdateOperation>& operation);

 private:
  UpdateContainerResources(const HandlerDeps& deps, std::shared_ptr<operations::UpdateOperation> operation,
                           std::string id)
      : deps_(deps), operation_(std::move(operation)), update_(operation_->update()), container_id_(std::move(id)) {}

  void begin_turn(const Status& turn_status);
  bool needs_environment(const Allocation& before) const;
  /// `with_environment` is `before_` and, where policies are asked, what is never stored.
  void decide(const Allocation& with_environment);
  std::optional<Event> choose_event(const Allocation& before);
  Event follow_kubelet(const placement::Workload& requested) const;
  void share(const std::string& why, const placement::Workload& requested, placement::Decision& decision) const;
  bool joins_pool_in_place(const Event& event) const;
  void deny(const placement::Workload& requested, placement::Decision decision);
  bool gains_nothing() const;
  void wait_for_neighbours();
  void clear_for_runtime();
  CpuSet kept_cpus() const;
  void place_without_moves(const std::string& why);
  void revert(const std::string& why, std::function<void()> then);
  void admit();
  void on_outcome(const operations::Outcome& outcome);
  void answer(bool invalidates);

  const HandlerDeps& deps_;
  const std::shared_ptr<operations::UpdateOperation> operation_;
  const operations::ResourceUpdate& update_;
  const std::string container_id_;
  Allocation before_;
  bool may_make_room_ = true;            ///< others may be moved for a better place of it
  bool waits_for_room_ = false;          ///< some were, and had not left when it began to wait
  bool keeps_its_cpus_ = false;          ///< others may still be on those that it gains, and it is not told these yet
  std::optional<Event> deferred_event_;  ///< committed only once the runtime has taken the update
  ContainerCpuset sent_;
  ContainerQueues::OperationDone operation_done_;
};

}  // namespace topolet::engine
