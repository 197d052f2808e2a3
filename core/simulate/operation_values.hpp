// Reads the values of a workload line's fields. Each throws InvalidLine, which names the field, for a value that the
// field cannot have.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/simulate/runtime_connection.hpp"
#include "core/simulate/simulated_runtime.hpp"

namespace topolet::simulate {

/// A mistake in a line; caught in parse_operation().
struct InvalidLine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string text_of(const nlohmann::json& value, std::string_view key);
/// From `least` to `most`.
std::int64_t number_of(const nlohmann::json& value, std::string_view key, std::int64_t least, std::int64_t most);
/// Not negative.
std::int64_t amount_of(const nlohmann::json& value, std::string_view key);
bool flag_of(const nlohmann::json& value, std::string_view key);
std::string lower(std::string text);

template <class Set>
Set set_of(const nlohmann::json& value, std::string_view key) {
  const auto set = Set::parse(text_of(value, key));
  if (!set) throw InvalidLine(std::string(key) + ": " + set.error().message);
  return *set;
}

std::map<std::string, std::string> texts_of(const nlohmann::json& value, std::string_view key);
std::vector<std::string> list_of(const nlohmann::json& value, std::string_view key);
/// {"NAME": "value"}, or ["NAME=value"].
std::vector<std::pair<std::string, std::string>> env_of(const nlohmann::json& value, std::string_view key);
/// One of `allowed`; for another that is nearly one of them the mistake names it.
std::string one_of(const nlohmann::json& value, std::string_view key, const std::vector<std::string>& allowed);
/// Bytes by page size as the CRI writes it, such as "2MB".
std::map<std::string, std::int64_t> huge_pages_of(const nlohmann::json& value, std::string_view key);
NextResponse next_of(const nlohmann::json& value, std::string_view key);
/// None: "now".
std::optional<KillPoint::At> kill_at_of(const nlohmann::json& value, std::string_view key);
SandboxState sandbox_state_of(const nlohmann::json& value, std::string_view key);
RuntimeTells tells_of(const nlohmann::json& value, std::string_view key);

}  // namespace topolet::simulate
