// The protocol ttrpc, as far as NRI uses it: unary calls. A message has a header of ten bytes (the length of what
// follows and the number of the call, both big-endian, then type and flags) and a payload that is a protobuf message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/fronts/nri/mux.hpp"

namespace topolet::nri {

/// The longest payload that ttrpc reads. Either side closes the connection at a longer one.
constexpr std::size_t kMaxMessageBytes = 4 << 20;
constexpr std::size_t kMessageHeaderBytes = 10;
/// The longest payload that is sent: with its header it fits into the frames that the runtime keeps unread.
constexpr std::size_t kMaxSentBytes = kMaxUnreadFrames * kMaxFrameBytes - kMessageHeaderBytes;

enum class MessageType : std::uint8_t { kRequest = 1, kResponse = 2 };

/// Appends a message to `out`. `call`: odd, greater than that of the call before, and the same in the response.
/// RESOURCE_EXHAUSTED, and nothing is appended, if the payload is longer than kMaxSentBytes.
Status append_message(std::uint32_t call, MessageType type, std::string_view payload, std::string& out);

/// Puts the messages of one channel together from pieces of any size.
class MessageReader {
 public:
  using OnMessage = std::function<void(std::uint32_t call, MessageType type, const std::string& payload)>;

  /// Calls `on_message` for each message that `received` completes. Messages of other types are dropped.
  /// RESOURCE_EXHAUSTED at one that is too long: nothing can be read after that.
  Status read(std::string_view received, const OnMessage& on_message);
  /// What has arrived of a message that is not complete.
  const std::string& pending() const { return pending_; }

 private:
  std::string pending_;  ///< a message that has arrived in part
};

/// A call as its request has it.
struct Request {
  std::string service;          ///< such as "nri.pkg.api.v1alpha1.Runtime"
  std::string method;           ///< such as "RegisterPlugin"
  std::string payload;          ///< a protobuf message
  std::int64_t timeout_ns = 0;  ///< 0: none
};

std::string encode(const Request& request);
/// INVALID_ARGUMENT if the bytes are no request.
Result<Request> decode_request(const std::string& bytes);

/// `answer`: the payload, or the error of the call.
std::string encode_response(const Result<std::string>& answer);
/// Returns the payload, or the error that the other side has given. INVALID_ARGUMENT if the bytes are no response.
Result<std::string> decode_response(const std::string& bytes);

}  // namespace topolet::nri
