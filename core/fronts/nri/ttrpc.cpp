#include "core/fronts/nri/ttrpc.hpp"

#include <fmt/format.h>

#include "core/fronts/nri/big_endian.hpp"
#include "core/fronts/nri/nri.pb.h"

namespace topolet::nri {
namespace {

constexpr std::size_t kCallOffset = 4;
constexpr std::size_t kTypeOffset = 8;

}  // namespace

Status append_message(std::uint32_t call, MessageType type, std::string_view payload, std::string& out) {
  if (payload.size() > kMaxSentBytes) {
    return Error{Code::kResourceExhausted,
                 fmt::format("a message of {} bytes is not sent to the runtime: its NRI socket takes at most {} bytes "
                             "at once",
                             payload.size(), kMaxSentBytes)};
  }
  append_big_endian(static_cast<std::uint32_t>(payload.size()), out);
  append_big_endian(call, out);
  out.push_back(static_cast<char>(type));
  out.push_back(0);
  out.append(payload);
  return {};
}

Status MessageReader::read(std::string_view received, const OnMessage& on_message) {
  pending_.append(received);
  std::size_t begin = 0;
  while (pending_.size() - begin >= kMessageHeaderBytes) {
    const char* const header = pending_.data() + begin;
    const std::size_t length = read_big_endian(header);
    if (length > kMaxMessageBytes) {
      return Error{Code::kResourceExhausted,
                   fmt::format("the runtime sends a message of {} bytes, and NRI has at most {} in one", length,
                               kMaxMessageBytes)};
    }
    if (pending_.size() - begin - kMessageHeaderBytes < length) break;
    const std::uint32_t call = read_big_endian(header + kCallOffset);
    const auto type = static_cast<MessageType>(header[kTypeOffset]);
    if (type == MessageType::kRequest || type == MessageType::kResponse)
      on_message(call, type, pending_.substr(begin + kMessageHeaderBytes, length));
    begin += kMessageHeaderBytes + length;
  }
  pending_.erase(0, begin);
  return {};
}

std::string encode(const Request& request) {
  lens::TtrpcRequest message;
  message.set_service(request.service);
  message.set_method(request.method);
  message.set_payload(request.payload);
  message.set_timeout_ns(request.timeout_ns);
  return message.SerializeAsString();
}

Result<Request> decode_request(const std::string& bytes) {
  lens::TtrpcRequest message;
  if (!message.ParseFromString(bytes)) return Error{Code::kInvalidArgument, "the runtime's request cannot be read"};
  return Request{message.service(), message.method(), message.payload(), message.timeout_ns()};
}

std::string encode_response(const Result<std::string>& answer) {
  lens::TtrpcResponse message;
  if (answer) {
    message.set_payload(*answer);
  } else {
    message.mutable_status()->set_code(static_cast<std::int32_t>(answer.error().code));
    message.mutable_status()->set_message(answer.error().message);
  }
  return message.SerializeAsString();
}

Result<std::string> decode_response(const std::string& bytes) {
  lens::TtrpcResponse message;
  if (!message.ParseFromString(bytes)) return Error{Code::kInvalidArgument, "the runtime's answer cannot be read"};
  // Without a status the call has succeeded.
  if (message.status().code() == 0) return message.payload();
  const bool is_known =
      message.status().code() > 0 && message.status().code() <= static_cast<int>(Code::kUnauthenticated);
  return Error{is_known ? static_cast<Code>(message.status().code()) : Code::kUnknown, message.status().message()};
}

}  // namespace topolet::nri
