#include "tests/fuzz/nri_properties.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/fronts/nri/big_endian.hpp"
#include "core/fronts/nri/guard.hpp"
#include "core/fronts/nri/mux.hpp"
#include "core/fronts/nri/nri.pb.h"
#include "core/fronts/nri/ttrpc.hpp"

namespace topolet {
namespace {

constexpr std::size_t kFrameHeader = 8;
constexpr const char* kOwnPlugin = "99-topolet-guard";

using Streams = std::map<std::uint32_t, std::string>;

Streams read_in_pieces(std::string_view bytes, std::size_t piece) {
  Streams streams;
  nri::FrameReader reader;
  for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
    reader.read(bytes.substr(begin, piece), [&](nri::Channel channel, std::string_view part) {
      streams[static_cast<std::uint32_t>(channel)] += part;
    });
  }
  return streams;
}

/// As FrameReader, by positions in the whole.
Streams read_plainly(std::string_view bytes) {
  Streams streams;
  while (bytes.size() >= kFrameHeader) {
    const std::uint32_t channel = nri::read_big_endian(bytes.data());
    const std::size_t length = nri::read_big_endian(bytes.data() + 4);
    bytes.remove_prefix(kFrameHeader);
    const std::string_view payload = bytes.substr(0, length);
    if ((channel == 1 || channel == 2) && !payload.empty()) streams[channel] += payload;
    bytes.remove_prefix(payload.size());
  }
  return streams;
}

struct Messages {
  std::vector<std::tuple<std::uint32_t, nri::MessageType, std::string>> read;
  bool has_failed = false;

  friend bool operator==(const Messages&, const Messages&) = default;
};

Messages messages_in_pieces(std::string_view stream, std::size_t piece) {
  Messages messages;
  nri::MessageReader reader;
  for (std::size_t begin = 0; begin < stream.size() && !messages.has_failed; begin += piece) {
    const Status status = reader.read(stream.substr(begin, piece),
                                      [&](std::uint32_t call, nri::MessageType type, const std::string& payload) {
                                        messages.read.emplace_back(call, type, payload);
                                      });
    messages.has_failed = !status.has_value();
  }
  return messages;
}

Messages messages_plainly(std::string_view stream) {
  Messages messages;
  while (stream.size() >= nri::kMessageHeaderBytes) {
    const std::size_t length = nri::read_big_endian(stream.data());
    messages.has_failed = length > nri::kMaxMessageBytes;
    if (messages.has_failed || stream.size() - nri::kMessageHeaderBytes < length) break;
    const auto type = static_cast<nri::MessageType>(stream[8]);
    if (type == nri::MessageType::kRequest || type == nri::MessageType::kResponse) {
      messages.read.emplace_back(nri::read_big_endian(stream.data() + 4), type,
                                 stream.substr(nri::kMessageHeaderBytes, length));
    }
    stream.remove_prefix(nri::kMessageHeaderBytes + length);
  }
  return messages;
}

/// What is read of `bytes` as a message of the lens is the same after it was written again.
template <class Message>
bool is_stable(const std::string& bytes) {
  Message first;
  if (!first.ParseFromString(bytes)) return true;
  Message second;
  if (!second.ParseFromString(first.SerializeAsString())) return false;
  return first.SerializeAsString() == second.SerializeAsString();
}

std::string judge_payload(const std::string& payload) {
  namespace lens = nri::lens;
  if (!is_stable<lens::ConfigureRequest>(payload) || !is_stable<lens::SynchronizeRequest>(payload) ||
      !is_stable<lens::ValidateRequest>(payload)) {
    return "a message of the lens is not read as it was written";
  }
  const auto found = nri::read_foreign_cpuset(payload, kOwnPlugin);
  if (!found || !*found) return "";
  if (!(*found)->cpus_plugin && !(*found)->mems_plugin) return "a cpuset is said to be set by nobody";
  if ((*found)->cpus_plugin == kOwnPlugin || (*found)->mems_plugin == kOwnPlugin) return "topolet is taken for another";
  return "";
}

std::string judge_request(const std::string& bytes, bool& accepted) {
  const Result<nri::Request> request = nri::decode_request(bytes);
  if (!request) return "";
  accepted = true;
  const Result<nri::Request> again = nri::decode_request(nri::encode(*request));
  const bool is_same = again && again->service == request->service && again->method == request->method &&
                       again->payload == request->payload && again->timeout_ns == request->timeout_ns;
  return is_same ? judge_payload(request->payload) : "a request is not read as it was written";
}

std::string judge_response(const std::string& bytes) {
  const Result<std::string> response = nri::decode_response(bytes);
  const Result<std::string> again = nri::decode_response(nri::encode_response(response));
  const bool is_same =
      again.has_value() == response.has_value() && (again ? *again == *response : again.error() == response.error());
  return is_same ? "" : "a response is not read as it was written";
}

/// What topolet sends: `payload` as an answer, in frames.
std::string judge_sent(const std::string& payload) {
  std::string message;
  std::string frames;
  if (!nri::append_message(3, nri::MessageType::kResponse, payload, message)) return "a short message is refused";
  nri::append_frames(nri::Channel::kPlugin, message, frames);
  for (std::string_view left = frames; !left.empty();) {
    const std::size_t length = nri::read_big_endian(left.data() + 4);
    if (length == 0 || length > nri::kMaxFrameBytes) return "a frame is sent that the runtime cannot read";
    left.remove_prefix(kFrameHeader + length);
  }
  const Messages read = messages_in_pieces(read_in_pieces(frames, 1000)[1], 1000);
  const Messages expected{{{3, nri::MessageType::kResponse, payload}}, false};
  return read == expected ? "" : "an answer is not read as it was sent";
}

}  // namespace

TextJudgement judge_nri(const std::string& bytes) {
  TextJudgement judgement;
  const Streams streams = read_plainly(bytes);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::max<std::size_t>(1, bytes.size())}) {
    if (read_in_pieces(bytes, piece) != streams) judgement.violation = "frames are read differently in pieces";
    for (const auto& [channel, stream] : streams) {
      if (messages_in_pieces(stream, piece) != messages_plainly(stream))
        judgement.violation = "messages are read differently in pieces";
    }
  }
  for (const auto& [channel, stream] : streams) {
    for (const auto& [call, type, payload] : messages_plainly(stream).read) {
      if (!judgement.violation.empty()) return judgement;
      judgement.violation =
          type == nri::MessageType::kRequest ? judge_request(payload, judgement.accepted) : judge_response(payload);
    }
  }
  if (judgement.violation.empty()) judgement.violation = judge_sent(bytes);
  return judgement;
}

}  // namespace topolet
