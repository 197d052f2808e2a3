// Small maps in one column: compact JSON, or nothing for an empty map.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace topolet::store {

using TextMap = std::map<std::string, std::string>;
using NumberMap = std::map<std::string, std::int64_t>;

std::string encode_map(const TextMap& map);
std::string encode_map(const NumberMap& map);

/// None if `text` is nothing that encode_map() writes.
template <class Map>
std::optional<Map> decode_map(const std::string& text);
template <>
std::optional<TextMap> decode_map(const std::string& text);
template <>
std::optional<NumberMap> decode_map(const std::string& text);

}  // namespace topolet::store
