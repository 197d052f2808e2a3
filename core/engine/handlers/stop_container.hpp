// The ways of one StopContainer and of one RemoveContainer.
#pragma once

#include <memory>
#include <string>

#include "core/engine/handlers/handler_deps.hpp"
#include "core/operations/operation.hpp"

namespace topolet::engine {

/// Lives as long as its operation.
class StopContainer : public std::enable_shared_from_this<StopContainer> {
 public:
  static void handle(const HandlerDeps& deps, std::shared_ptr<operations::TargetOperation> operation);

 private:
  StopContainer(const HandlerDeps& deps, std::shared_ptr<operations::TargetOperation> operation,
                const Allocation& stopped)
      : deps_(deps),
        operation_(std::move(operation)),
        key_(stopped.workload.key),
        container_id_(stopped.container_id) {}

  void commit_requested();
  void on_outcome(const operations::Outcome& outcome);
  void inspected(const Result<operations::ContainerDetail>& detail);
  void commit_stop_refused();

  const HandlerDeps& deps_;
  const std::shared_ptr<operations::TargetOperation> operation_;
  const placement::ContainerKey key_;
  const std::string container_id_;
};

/// Any thread. Nothing is decided before the runtime is asked, and the loop hears of the end before the client does.
void handle_remove_container(const HandlerDeps& deps, const std::shared_ptr<operations::TargetOperation>& operation);

}  // namespace topolet::engine
