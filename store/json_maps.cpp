#include "store/json_maps.hpp"

#include <nlohmann/json.hpp>

namespace topolet::store {
namespace {

using Json = nlohmann::json;

/// Bytes that are not UTF-8 are replaced: JSON cannot hold them.
template <class Map>
std::string encode(const Map& map) {
  return map.empty() ? std::string() : Json(map).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Map, class Fits>
std::optional<Map> decode(const std::string& text, Fits fits) {
  Map map;
  if (text.empty()) return map;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  for (const auto& [key, value] : json.items()) {
    if (!fits(value)) return std::nullopt;
    map[key] = value.template get<typename Map::mapped_type>();
  }
  return map;
}

}  // namespace

std::string encode_map(const TextMap& map) { return encode(map); }
std::string encode_map(const NumberMap& map) { return encode(map); }

template <>
std::optional<TextMap> decode_map(const std::string& text) {
  return decode<TextMap>(text, [](const Json& value) { return value.is_string(); });
}

template <>
std::optional<NumberMap> decode_map(const std::string& text) {
  return decode<NumberMap>(text, [](const Json& value) { return value.is_number_integer(); });
}

}  // namespace topolet::store
