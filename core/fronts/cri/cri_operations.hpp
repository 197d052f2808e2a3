// CRI calls as operations: what their bytes ask for, and the way of the engine's word into bytes.
#pragma once

#include <memory>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/cri/call.hpp"
#include "core/operations/operation.hpp"

namespace topolet::cri {

// Each reads the request at once, on the caller's thread. INVALID_ARGUMENT names the message and what is wrong; the
// call is still to be answered then.
Result<std::shared_ptr<operations::CreateOperation>> read_create(std::shared_ptr<Call> call,
                                                                 const operations::DemandRules& rules, Log& log);
Result<std::shared_ptr<operations::UpdateOperation>> read_update(std::shared_ptr<Call> call);
/// Reads the request of a call about one container or sandbox that exists.
Result<std::shared_ptr<operations::TargetOperation>> read_target(std::shared_ptr<Call> call);
Result<std::shared_ptr<operations::RunSandboxOperation>> read_run_sandbox(std::shared_ptr<Call> call, Log& log);

}  // namespace topolet::cri
