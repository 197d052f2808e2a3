// The ways of one RunPodSandbox, StopPodSandbox and RemovePodSandbox. What makes or starts no container is refused by
// the runtime, in its own words.
#pragma once

#include <memory>

#include "core/engine/handlers/handler_deps.hpp"

namespace topolet::engine {

void handle_run_sandbox(const HandlerDeps& deps, const std::shared_ptr<operations::RunSandboxOperation>& operation);
void handle_stop_sandbox(const HandlerDeps& deps, const std::shared_ptr<operations::TargetOperation>& operation);
void handle_remove_sandbox(const HandlerDeps& deps, const std::shared_ptr<operations::TargetOperation>& operation);

}  // namespace topolet::engine
