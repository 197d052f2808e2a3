// Reading what others have written as JSON: what is missing or of another kind is empty.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace topolet::api {

/// Returns the value at `key`; null if there is none.
inline const nlohmann::json& field(const nlohmann::json& object, const std::string& key) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

template <class... Keys>
const nlohmann::json& field(const nlohmann::json& object, const std::string& key, const Keys&... more) {
  return field(field(object, key), more...);
}

/// field() as a text; empty if it is none.
template <class... Keys>
std::string text_field(const nlohmann::json& object, const Keys&... keys) {
  const nlohmann::json& found = field(object, keys...);
  return found.is_string() ? found.template get<std::string>() : std::string();
}

/// field() as a list; empty if it is none.
template <class... Keys>
const nlohmann::json::array_t& list_field(const nlohmann::json& object, const Keys&... keys) {
  static const nlohmann::json::array_t kEmpty;
  const nlohmann::json& found = field(object, keys...);
  return found.is_array() ? found.template get_ref<const nlohmann::json::array_t&>() : kEmpty;
}

/// field() as an object; empty if it is none.
template <class... Keys>
const nlohmann::json::object_t& map_field(const nlohmann::json& object, const Keys&... keys) {
  static const nlohmann::json::object_t kEmpty;
  const nlohmann::json& found = field(object, keys...);
  return found.is_object() ? found.template get_ref<const nlohmann::json::object_t&>() : kEmpty;
}

}  // namespace topolet::api
