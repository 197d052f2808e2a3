#include "core/cri/socket/client_frames.hpp"

#include <algorithm>

namespace topolet::cri {
namespace {

enum FrameType : std::uint8_t { kData = 0, kHeaders = 1, kResetStream = 3, kWindowUpdate = 8, kContinuation = 9 };
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;
constexpr std::uint8_t kPadded = 8;
constexpr std::uint8_t kHasPriority = 32;
constexpr std::size_t kPriorityBytes = 5;
/// A frame of a large message has at least so much.
constexpr std::size_t kLargeFrameBytes = 4 << 10;

}  // namespace

std::size_t ClientFrames::take(const unsigned char* bytes, std::size_t size) {
  std::size_t work = size;
  while (size > 0) {
    if (skip_ > 0) {
      const std::size_t part = std::min(skip_, size);
      if (in_frame_) charge(part);
      if (in_frame_ && (type_ == kHeaders || type_ == kContinuation)) {
        const std::size_t fields = count_fields(bytes, part);
        charge_plainly(fields * kFieldMemoryBytes);
        work += fields * kFieldWorkBytes;
      }
      skip_ -= part;
      bytes += part;
      size -= part;
    } else {
      header_.at(header_size_++) = *bytes++;
      --size;
      if (header_size_ == kFrameHeaderBytes) work += begin_frame();
    }
    if (skip_ == 0 && in_frame_) end_frame();
  }
  return work;
}

std::size_t ClientFrames::begin_frame() {
  header_size_ = 0;
  in_frame_ = true;
  skip_ = std::size_t{header_[0]} << 16 | std::size_t{header_[1]} << 8 | header_[2];
  type_ = header_[3];
  flags_ = header_[4];
  stream_ = std::uint32_t{header_[5]} << 24 | std::uint32_t{header_[6]} << 16 | std::uint32_t{header_[7]} << 8 |
            std::uint32_t{header_[8]};
  in_message_ = type_ == kData && skip_ >= kLargeFrameBytes;
  std::size_t work = kFrameWorkBytes;
  if (type_ == kHeaders) {
    next_ = Next::kField;
    text_left_ = ((flags_ & kPadded) != 0 ? 1 : 0) + ((flags_ & kHasPriority) != 0 ? kPriorityBytes : 0);
    header_ends_request_ = (flags_ & kEndStream) != 0;
    if (calls_.try_emplace(stream_, 0).second) {
      ++begun_requests_;
      charge(kCallMemoryBytes);
      work += kCallWorkBytes;
    }
  }
  charge(kFrameHeaderBytes);
  return work;
}

void ClientFrames::end_frame() {
  in_frame_ = false;
  const bool ends_header = (type_ == kHeaders || type_ == kContinuation) && (flags_ & kEndHeaders) != 0;
  if ((type_ == kData && (flags_ & kEndStream) != 0) || (ends_header && header_ends_request_)) {
    forget_call(stream_, /*complete=*/true);
  } else if (type_ == kResetStream) {
    forget_call(stream_, /*complete=*/false);
  }
}

/// Padding at the end of a frame is taken for fields.
std::size_t ClientFrames::count_fields(const unsigned char* bytes, std::size_t size) {
  constexpr unsigned char kContinues = 0x80;
  constexpr unsigned char kMostInPrefix = 0x7f;
  constexpr unsigned kMostShift = 28;
  std::size_t fields = 0;
  while (size > 0) {
    if (text_left_ > 0) {
      const std::size_t part = std::min(text_left_, size);
      text_left_ -= part;
      bytes += part;
      size -= part;
      continue;
    }
    const unsigned char byte = *bytes++;
    --size;
    if (next_ == Next::kField) {
      begin_field(byte);
      ++fields;
    } else if (next_ == Next::kRestOfIndex) {
      if ((byte & kContinues) == 0) next_ = after_number_;
    } else if (next_ == Next::kRestOfLength) {
      if (length_shift_ < kMostShift) length_ += (std::size_t{byte} & kMostInPrefix) << length_shift_;
      length_shift_ += 7;
      if ((byte & kContinues) != 0) continue;
      text_left_ = length_;
      next_ = after_number_;
    } else {
      const Next after = next_ == Next::kName ? Next::kValue : Next::kField;
      const bool is_whole = (byte & kMostInPrefix) != kMostInPrefix;
      length_ = std::size_t{byte} & kMostInPrefix;
      length_shift_ = 0;
      after_number_ = after;
      text_left_ = is_whole ? length_ : 0;
      next_ = is_whole ? after : Next::kRestOfLength;
    }
  }
  return fields;
}

void ClientFrames::begin_field(unsigned char first) {
  constexpr unsigned char kIndexed = 0x80;
  constexpr unsigned char kKept = 0x40;
  constexpr unsigned char kTableSize = 0x20;
  const bool has_text = (first & kIndexed) == 0 && (first & (kKept | kTableSize)) != kTableSize;
  unsigned most = 0x0f;
  if ((first & kIndexed) != 0) {
    most = 0x7f;
  } else if ((first & kKept) != 0) {
    most = 0x3f;
  } else if ((first & kTableSize) != 0) {
    most = 0x1f;
  }
  const unsigned index = first & most;
  after_number_ = !has_text ? Next::kField : index == 0 ? Next::kName : Next::kValue;
  next_ = index == most ? Next::kRestOfIndex : after_number_;
}

void ClientFrames::charge(std::size_t bytes) {
  // Whoever reads a long answer sends these, and nothing is kept of them.
  if (type_ == kWindowUpdate) return;
  if (type_ == kHeaders || type_ == kContinuation) bytes *= kHeaderFactor;
  charge_plainly(bytes);
}

void ClientFrames::charge_plainly(std::size_t bytes) {
  const auto call = calls_.find(stream_);
  if (call == calls_.end()) {
    other_bytes_ += bytes;
    return;
  }
  call->second += bytes;
  calls_bytes_ += bytes;
}

void ClientFrames::forget_call(std::uint32_t stream, bool complete) {
  const auto call = calls_.find(stream);
  if (call == calls_.end()) return;
  if (complete) {
    ++complete_requests_;
  } else {
    --begun_requests_;
  }
  other_bytes_ = complete ? 0 : other_bytes_ + call->second;
  calls_bytes_ -= call->second;
  calls_.erase(call);
}

}  // namespace topolet::cri
