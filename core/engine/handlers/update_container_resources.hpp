#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/engine/handlers/deps.hpp"

namespace topolet::engine {

/// The way of one UpdateContainerResources: a resize, or a set of the kubelet's. Lives as long as its call.
class UpdateContainerResources : public std::enable_shared_from_this<UpdateContainerResources> {
 public:
  static void handle(const HandlerDeps& deps, const std::shared_ptr<Call>& call);

 private:
  UpdateContainerResources(const HandlerDeps& deps, std::shared_ptr<Call> call, UpdateRequest update, std::string id)
      : deps_(deps), call_(std::move(call)), update_(std::move(update)), id_(std::move(id)) {}

  void begin_turn(const Status& turn);
  bool needs_environment(const Allocation& before) const;
  void decide(const Allocation& before);
  Event keep_cpus(const Workload& wanted) const;
  Event follow_kubelet(const Workload& wanted) const;
  std::optional<Event> change_size(const Allocation& before, const Workload& wanted);
  bool joins_pool_where_it_is(const Event& event) const;
  void deny(const Workload& wanted, Decision decision);
  void wait_for_neighbours();
  void undo(const std::string& why, std::function<void()> then);
  void forward_update();
  void answered(const Answer& answer);
  void finish(bool invalidates);

  const HandlerDeps& deps_;
  const std::shared_ptr<Call> call_;
  const UpdateRequest update_;
  const std::string id_;
  Allocation before_;
  std::optional<Event> once_done_;  ///< what changes when the runtime has taken the update, if it must be so late
  CpusetTarget sent_;
  ContainerQueues::OperationDone turn_over_;
};

}  // namespace topolet::engine
