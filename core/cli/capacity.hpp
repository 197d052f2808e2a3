// How reported capacities are written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/control/control.pb.h"

namespace topolet::cli {

/// "12000 of 16000 milli-CPUs until 2026-01-31T12:00:00Z (told by operator)", and what follows from it.
std::string describe(const control::v1::Capacity& capacity);

/// All that is told, as an array.
nlohmann::ordered_json capacities_json(const control::v1::StatusResponse& status);

}  // namespace topolet::cli
