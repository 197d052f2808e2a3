#include "core/fronts/nri/mux.hpp"

#include <algorithm>

#include "core/fronts/nri/big_endian.hpp"

namespace topolet::nri {

void append_frames(Channel channel, std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const std::string_view payload = bytes.substr(0, kMaxFrameBytes);
    append_big_endian(static_cast<std::uint32_t>(channel), out);
    append_big_endian(static_cast<std::uint32_t>(payload.size()), out);
    out.append(payload);
    bytes.remove_prefix(payload.size());
  }
}

void FrameReader::read(std::string_view received, const OnBytes& on_bytes) {
  while (!received.empty()) {
    if (payload_left_ > 0) {
      const std::string_view payload = received.substr(0, payload_left_);
      payload_left_ -= static_cast<std::uint32_t>(payload.size());
      received.remove_prefix(payload.size());
      const auto channel = static_cast<Channel>(channel_);
      if (channel == Channel::kPlugin || channel == Channel::kRuntime) on_bytes(channel, payload);
      continue;
    }
    const std::string_view part = received.substr(0, kHeaderBytes - header_length_);
    std::copy(part.begin(), part.end(), header_.begin() + static_cast<std::ptrdiff_t>(header_length_));
    header_length_ += part.size();
    received.remove_prefix(part.size());
    if (header_length_ < kHeaderBytes) return;
    header_length_ = 0;
    channel_ = read_big_endian(header_.data());
    payload_left_ = read_big_endian(header_.data() + sizeof(std::uint32_t));
  }
}

std::string FrameReader::position() const {
  if (payload_left_ == 0) return std::string(header_.data(), header_length_);
  std::string header;
  append_big_endian(channel_, header);
  append_big_endian(payload_left_, header);
  return header;
}

}  // namespace topolet::nri
