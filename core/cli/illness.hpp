// The command's display of topoletd's illnesses.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/control/control.pb.h"

namespace topolet::cli {

/// The line with how the node is as a whole; empty where topoletd does not tell it.
std::string health_line(const control::v1::StatusResponse& status);

/// A line for each that no other line of the status tells by name, up to so many of a code.
std::string illness_lines(const control::v1::StatusResponse& status, std::int64_t now_ms);

/// Lines with the names of the containers that have this code, as many to a line as fit; empty if there is none.
std::string names_with(const control::v1::StatusResponse& status, const char* code);

/// Returns topoletd's sentences with this code, a line each; empty if there are none.
std::string sentences_of(const control::v1::StatusResponse& status, const char* code);

/// Something is more than a notice.
bool needs_somebody(const control::v1::StatusResponse& status);

nlohmann::ordered_json illnesses_json(const control::v1::StatusResponse& status);

/// "3 s", "5 min", "2 h 7 min", "3 days".
std::string duration_text(std::int64_t seconds);

}  // namespace topolet::cli
