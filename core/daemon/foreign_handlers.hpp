// Reports of containers that the daemon does not place.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/control/control.pb.h"
#include "core/engine/engine.hpp"

namespace topolet::daemon {

/// Fills in what `topolet status` shows; only so many that the answer stays small.
void tell_foreign(const engine::EngineSummary& engine, control::v1::StatusResponse& response);

/// Returns the number of them by runtime handler, for the metrics.
std::map<std::string, std::uint32_t> count_foreign(const engine::EngineSummary& engine);

}  // namespace topolet::daemon
