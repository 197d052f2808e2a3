// StopContainer and RemoveContainer.
#pragma once

#include <memory>
#include <string>

#include "core/engine/handlers/deps.hpp"

namespace topolet::engine {

/// Lives as long as its call.
class StopContainer : public std::enable_shared_from_this<StopContainer> {
 public:
  static void handle(const HandlerDeps& deps, const std::shared_ptr<Call>& call);

 private:
  StopContainer(const HandlerDeps& deps, std::shared_ptr<Call> call, const Allocation& stopped)
      : deps_(deps), call_(std::move(call)), key_(stopped.workload.key), id_(stopped.container_id) {}

  void commit_asked();
  void answered(const Answer& answer);
  void inspected(const Result<ContainerDetail>& detail);
  void goes_on();

  const HandlerDeps& deps_;
  const std::shared_ptr<Call> call_;
  const ContainerKey key_;
  const std::string id_;
};

void handle_remove_container(const HandlerDeps& deps, const std::shared_ptr<Call>& call);

}  // namespace topolet::engine
