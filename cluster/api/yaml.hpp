// YAML as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.hpp"

namespace topolet::api {

/// The first document of a text. All scalars become texts, but for null and empty plain ones, which become null.
/// Anchors are resolved. INVALID_ARGUMENT with the line of a mistake.
Result<nlohmann::json> parse_yaml(const std::string& text);

}  // namespace topolet::api
