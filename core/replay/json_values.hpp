// Plain values as JSON and back. What a value is made of is said once, by Fields<T> in recorded_fields.hpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/shared_string_map.hpp"

namespace topolet::replay {

using Json = nlohmann::ordered_json;

/// A line that cannot be what a recorder wrote. It and the exceptions of the JSON library end where a line is read.
struct InvalidLine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Specialised for each structure that is recorded: `static auto all()` returns a tuple of fields.
template <class T>
struct Fields;

/// Specialised for each enumeration that is written as its to_string() says: `static auto all()` returns its values. Of
/// others the number is written.
template <class T>
struct Words;
template <class T>
concept HasWords = requires {
  Words<T>::all();
};

template <class T, class Member>
struct Field {
  const char* name;
  Member T::*member;
};

template <class T, class Member>
constexpr Field<T, Member> field(const char* name, Member T::*member) {
  return {name, member};
}

template <class T>
Json to_json(const T& value);
template <class T>
void read_json(const Json& json, T& value);

namespace detail {

template <class T>
struct IsIndexSet : std::false_type {};
template <class Tag>
struct IsIndexSet<IndexSet<Tag>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T>
struct IsDuration : std::false_type {};
template <class Rep, class Period>
struct IsDuration<std::chrono::duration<Rep, Period>> : std::true_type {};

template <class T>
constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;

template <class T, class Visit>
void for_each_field(Visit visit) {
  std::apply([&visit](const auto&... fields) { (visit(fields), ...); }, Fields<T>::all());
}

/// How each field of a default value is written: a field that is so is left out.
template <class T>
const std::vector<Json>& default_fields() {
  static const std::vector<Json> kDefaults = [] {
    const T value{};
    std::vector<Json> defaults;
    for_each_field<T>([&](const auto& field) { defaults.push_back(to_json(value.*field.member)); });
    return defaults;
  }();
  return kDefaults;
}

template <class T>
Json object_of(const T& value) {
  Json json = Json::object();
  auto skipped = default_fields<T>().begin();
  for_each_field<T>([&](const auto& field) {
    Json written = to_json(value.*field.member);
    if (written != *skipped++) json[field.name] = std::move(written);
  });
  return json;
}

template <class T>
void read_object(const Json& json, T& value) {
  if (!json.is_object()) throw InvalidLine("an object is missing");
  for_each_field<T>([&](const auto& field) {
    if (const auto found = json.find(field.name); found != json.end()) read_json(*found, value.*field.member);
  });
}

template <class T>
void read_set(const Json& json, T& set) {
  auto parsed = T::parse(json.get<std::string>());
  if (!parsed) throw InvalidLine(parsed.error().message);
  set = *std::move(parsed);
}

}  // namespace detail

template <class T>
Json to_json(const T& value) {
  if constexpr (detail::kIsPlain<T>) {
    return Json(value);
  } else if constexpr (HasWords<T>) {
    return Json(std::string(to_string(value)));
  } else if constexpr (std::is_enum_v<T>) {
    return Json(static_cast<std::int64_t>(value));
  } else if constexpr (detail::IsIndexSet<T>::value) {
    return Json(value.to_string());
  } else if constexpr (detail::IsDuration<T>::value) {
    return Json(static_cast<std::int64_t>(value.count()));
  } else if constexpr (detail::IsOptional<T>::value) {
    return value ? to_json(*value) : Json();
  } else if constexpr (detail::IsPair<T>::value) {
    return Json::array({to_json(value.first), to_json(value.second)});
  } else if constexpr (detail::IsVector<T>::value) {
    Json json = Json::array();
    for (const auto& item : value) json.push_back(to_json(item));
    return json;
  } else if constexpr (detail::IsMap<T>::value || std::is_same_v<T, SharedStringMap>) {
    Json json = Json::object();
    for (const auto& [key, item] : value) json[key] = to_json(item);
    return json;
  } else {
    return detail::object_of(value);
  }
}

/// Leaves alone the fields that are not there. Throws InvalidLine for a value of another shape.
template <class T>
void read_json(const Json& json, T& value) {
  if constexpr (detail::kIsPlain<T>) {
    value = json.get<T>();
  } else if constexpr (HasWords<T>) {
    const std::string word = json.get<std::string>();
    const auto all = Words<T>::all();
    const auto known = std::find_if(all.begin(), all.end(), [&word](T one) { return to_string(one) == word; });
    if (known == all.end()) throw InvalidLine("there is no \"" + word + '"');
    value = *known;
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(json.get<std::int64_t>());
  } else if constexpr (detail::IsIndexSet<T>::value) {
    detail::read_set(json, value);
  } else if constexpr (detail::IsDuration<T>::value) {
    value = T(json.get<std::int64_t>());
  } else if constexpr (detail::IsOptional<T>::value) {
    value.reset();
    if (!json.is_null()) read_json(json, value.emplace());
  } else if constexpr (detail::IsPair<T>::value) {
    read_json(json.at(0), value.first);
    read_json(json.at(1), value.second);
  } else if constexpr (detail::IsVector<T>::value) {
    if (!json.is_array()) throw InvalidLine("a list is missing");
    value.clear();
    for (const Json& item : json) read_json(item, value.emplace_back());
  } else if constexpr (detail::IsMap<T>::value) {
    if (!json.is_object()) throw InvalidLine("an object is missing");
    value.clear();
    for (const auto& [key, item] : json.items()) read_json(item, value[key]);
  } else if constexpr (std::is_same_v<T, SharedStringMap>) {
    SharedStringMap::Map map;
    read_json(json, map);
    value = SharedStringMap(std::move(map));
  } else {
    detail::read_object(json, value);
  }
}

template <class T>
T from_json(const Json& json) {
  T value{};
  read_json(json, value);
  return value;
}

}  // namespace topolet::replay
