// Parsing with the lens, for the files of this room that use it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/base/text.hpp"
#include "core/operations/demand.hpp"

namespace topolet::lens {
class Resources;
}

namespace topolet::cri {

operations::RawResources raw_of(const lens::Resources& resources);

/// INVALID_ARGUMENT for requests, whose sender did wrong; INTERNAL for answers, as gRPC itself says it.
Error unparsable(Code code, std::string_view message_name);

template <class Message>
Result<Message> parse_request(const std::string& bytes, std::string_view message_name) {
  Message message;
  if (!message.ParseFromString(bytes)) return unparsable(Code::kInvalidArgument, message_name);
  return message;
}

template <class Message>
Result<Message> parse_response(const std::string& bytes, std::string_view message_name) {
  Message message;
  if (!message.ParseFromString(bytes)) return unparsable(Code::kInternal, message_name);
  return message;
}

/// Repeated keys: the last one counts, as in every protobuf map.
template <class Entries>
std::map<std::string, std::string> map_of(const Entries& entries) {
  std::map<std::string, std::string> map;
  for (const auto& entry : entries) map[entry.key()] = entry.value();
  return map;
}

/// CPU or node lists in a message; far longer than any that Linux accepts (8192 CPUs) is refused unread.
inline constexpr std::size_t kMaxListBytes = 65536;

template <class Set>
Result<Set> parse_list(std::string_view list, std::string_view message_name, std::string_view field) {
  const std::string where = std::string(message_name) + ": " + std::string(field) + ": ";
  if (list.size() > kMaxListBytes) return Error{Code::kInvalidArgument, where + "the list is longer than 64 KiB"};
  auto set = Set::parse(list);
  if (!set) return Error{Code::kInvalidArgument, where + printable(set.error().message, 200)};
  return set;
}

}  // namespace topolet::cri
