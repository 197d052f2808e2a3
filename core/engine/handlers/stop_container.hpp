// StopContainer and RemoveContainer.
#pragma once

#include <memory>
#include <string>

#include "core/engine/handlers/handler_deps.hpp"

namespace topolet::engine {

/// Lives as long as its call.
class StopContainer : public std::enable_shared_from_this<StopContainer> {
 public:
  static void handle(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call);

 private:
  StopContainer(const HandlerDeps& deps, std::shared_ptr<cri::Call> call, const Allocation& stopped)
      : deps_(deps), call_(std::move(call)), key_(stopped.workload.key), container_id_(stopped.container_id) {}

  void commit_requested();
  void on_response(const cri::RuntimeResponse& answer);
  void inspected(const Result<cri::ContainerDetail>& detail);
  void commit_stop_refused();

  const HandlerDeps& deps_;
  const std::shared_ptr<cri::Call> call_;
  const placement::ContainerKey key_;
  const std::string container_id_;
};

/// Any thread. Nothing is decided before the runtime is asked, and the loop hears of the end before the client does.
void handle_remove_container(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call);

}  // namespace topolet::engine
