// A create for which a plugin of the runtime sets other CPUs or memory nodes than topolet.
#pragma once

#include "core/engine/handlers/handler_deps.hpp"
#include "core/operations/foreign_cpuset.hpp"

namespace topolet::engine {

/// Commits that the plugin overrules topolet, and calls `judged` when that is durable: with a refusal if `refuses`. At
/// once and without one if topolet has not placed the container, or the plugin sets what topolet does.
void judge_foreign_cpuset(const HandlerDeps& deps, const operations::ForeignCpuset& found, bool refuses,
                          const operations::OnForeignCpusetJudged& judged);

}  // namespace topolet::engine
