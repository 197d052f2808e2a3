// RunPodSandbox, StopPodSandbox and RemovePodSandbox. What makes or starts no container is refused by the runtime, in
// its own words.
#pragma once

#include <memory>

#include "core/engine/handlers/handler_deps.hpp"

namespace topolet::engine {

void handle_run_pod_sandbox(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call);
void handle_stop_pod_sandbox(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call);
void handle_remove_pod_sandbox(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call);

}  // namespace topolet::engine
