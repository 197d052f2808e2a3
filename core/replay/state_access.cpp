#include "core/replay/state_access.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "core/base/utf8.hpp"
#include "core/replay/record_format.hpp"

namespace topolet::replay {
namespace {

using Kind = StateAccess::Kind;

constexpr std::array<std::pair<Kind, const char*>, 6> kFields = {{{Kind::kAll, "all"},
                                                                  {Kind::kGet, "get"},
                                                                  {Kind::kNext, "next"},
                                                                  {Kind::kCount, "count"},
                                                                  {Kind::kSet, "set"},
                                                                  {Kind::kRemove, "remove"}}};

/// Plugins keep any bytes; JSON has only text.
Json bytes_json(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return {{"hex", std::move(hex)}};
}

std::string read_bytes(const Json& json) {
  if (!json.is_object()) return json.get<std::string>();
  const std::string hex = json.at("hex").get<std::string>();
  if (hex.size() % 2 != 0 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw InvalidLine("\"hex\" is not a row of bytes");
  std::string bytes;
  for (std::size_t at = 0; at < hex.size(); at += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
  return bytes;
}

bool is_read(Kind kind) { return kind == Kind::kGet || kind == Kind::kNext || kind == Kind::kCount; }

}  // namespace

std::optional<std::string> known_answer(const StateAccess& access, const KnownState& known) {
  if (access.kind == Kind::kCount) return std::to_string(known.size());
  if (access.kind == Kind::kNext) {
    const auto next = known.upper_bound(access.key);
    return next == known.end() ? std::nullopt : std::optional(next->first);
  }
  const auto found = known.find(access.key);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

void apply_to_known(const StateAccess& access, KnownState& known) {
  if (access.error) return;
  switch (access.kind) {
    case Kind::kAll:
      known = access.all;
      break;
    case Kind::kSet:
      known[access.key] = access.value.value_or("");
      break;
    case Kind::kRemove:
      known.erase(access.key);
      break;
    case Kind::kGet:
      // Somebody else has written it.
      if (access.value) {
        known[access.key] = *access.value;
      } else {
        known.erase(access.key);
      }
      break;
    case Kind::kNext:
    case Kind::kCount:
      break;
  }
}

Json to_line(const StateAccess& access, const KnownState& known) {
  Json line{{"op", op::kState}, {"plugin", access.plugin}};
  for (const auto& [kind, name] : kFields) {
    if (kind != access.kind) continue;
    line[name] = bytes_json(access.key);
    if (kind != Kind::kAll) continue;
    line[name] = Json::array();
    for (const auto& [key, value] : access.all) line[name].push_back({bytes_json(key), bytes_json(value)});
  }
  if (access.error) {
    line["error"] = {{"code", static_cast<int>(access.error->code)}, {"message", access.error->message}};
  } else if (access.kind == Kind::kSet || (is_read(access.kind) && access.value != known_answer(access, known))) {
    line["value"] = access.value ? bytes_json(*access.value) : Json();
  }
  return line;
}

StateAccess read_state_line(const Json& line, const KnownState& known) {
  StateAccess access;
  access.plugin = line.at("plugin").get<std::string>();
  const char* field = nullptr;
  for (const auto& [kind, name] : kFields) {
    if (!line.contains(name)) continue;
    access.kind = kind;
    field = name;
  }
  if (field == nullptr) throw InvalidLine("the line does not say what is done with the state");
  if (access.kind == Kind::kAll) {
    for (const Json& entry : line.at(field)) access.all[read_bytes(entry.at(0))] = read_bytes(entry.at(1));
    return access;
  }
  access.key = read_bytes(line.at(field));
  if (const auto error = line.find("error"); error != line.end()) {
    access.error = {static_cast<Code>(error->at("code").get<int>()), error->at("message").get<std::string>()};
  } else if (const auto value = line.find("value"); value != line.end()) {
    if (!value->is_null()) access.value = read_bytes(*value);
  } else if (is_read(access.kind)) {
    access.value = known_answer(access, known);
  }
  return access;
}

}  // namespace topolet::replay
