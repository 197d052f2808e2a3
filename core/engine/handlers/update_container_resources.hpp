#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/engine/handlers/handler_deps.hpp"

namespace topolet::engine {

/// The way of one UpdateContainerResources: a resize, or a set of the kubelet's. Lives as long as its call.
class UpdateContainerResources : public std::enable_shared_from_this<UpdateContainerResources> {
 public:
  static void handle(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call);

 private:
  UpdateContainerResources(const HandlerDeps& deps, std::shared_ptr<cri::Call> call, cri::UpdateRequest update,
                           std::string id)
      : deps_(deps), call_(std::move(call)), update_(std::move(update)), container_id_(std::move(id)) {}

  void begin_turn(const Status& turn_status);
  bool needs_environment(const Allocation& before) const;
  /// `with_environment` is `before_` and, where policies are asked, what is never stored.
  void decide(const Allocation& with_environment);
  std::optional<Event> choose_event(const Allocation& before);
  Event follow_kubelet(const placement::Workload& requested) const;
  bool joins_pool_in_place(const Event& event) const;
  void deny(const placement::Workload& requested, placement::Decision decision);
  bool gains_nothing() const;
  void wait_for_neighbours();
  void revert(const std::string& why, std::function<void()> then);
  void forward_update();
  void on_response(const cri::RuntimeResponse& answer);
  void finish(bool invalidates);

  const HandlerDeps& deps_;
  const std::shared_ptr<cri::Call> call_;
  const cri::UpdateRequest update_;
  const std::string container_id_;
  Allocation before_;
  std::optional<Event> deferred_event_;  ///< committed only once the runtime has taken the update
  ContainerCpuset sent_;
  ContainerQueues::OperationDone operation_done_;
};

}  // namespace topolet::engine
