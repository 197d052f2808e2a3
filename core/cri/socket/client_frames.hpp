// The bytes that a client has sent and that are not part of a complete request yet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace topolet::cri {

/// Follows the frames (RFC 9113) of one client from its first byte on, without looking into them. For one thread at a
/// time.
class ClientFrames {
 public:
  /// The cost of a call whose header has come, however short the header is: in memory while it lasts, and in the time
  /// that it takes to begin, as if so many bytes had been sent.
  static constexpr std::size_t kCallMemoryBytes = 16 << 10;
  static constexpr std::size_t kCallWorkBytes = 256 << 10;
  /// A header is kept as fields with their names, which take about that much more than it has bytes.
  static constexpr std::size_t kHeaderFactor = 2;
  static constexpr std::size_t kFrameWorkBytes = 64;
  /// The same for a field of a header. It may be sent as a single byte, if it was sent before.
  static constexpr std::size_t kFieldMemoryBytes = 128;
  static constexpr std::size_t kFieldWorkBytes = 1 << 10;

  /// Takes the bytes that came next; returns what work they are, in bytes of a large message.
  std::size_t take(const unsigned char* bytes, std::size_t size);

  /// Returns the bytes sent of requests that are not complete, and all else since the last complete request: pings,
  /// settings, requests that were cancelled.
  std::size_t unfinished_bytes() const { return calls_bytes_ + other_bytes_; }
  /// Returns the number of requests that have begun and were not cancelled by the client before they were complete.
  std::uint64_t begun_requests() const { return begun_requests_; }
  /// Returns the number of complete requests.
  std::uint64_t complete_requests() const { return complete_requests_; }
  /// The client is sending a large message, as opposed to many small frames.
  bool in_message() const { return in_message_; }

 private:
  static constexpr std::size_t kFrameHeaderBytes = 9;
  static constexpr std::size_t kPrefaceBytes = 24;

  std::size_t begin_frame();
  void end_frame();
  std::size_t count_fields(const unsigned char* bytes, std::size_t size);
  void begin_field(unsigned char first);
  void charge(std::size_t bytes);
  void charge_plainly(std::size_t bytes);
  void forget_call(std::uint32_t stream, bool complete);

  std::size_t skip_ = kPrefaceBytes;  ///< bytes left of the frame's payload
  std::array<unsigned char, kFrameHeaderBytes> header_{};
  std::size_t header_size_ = 0;
  bool in_frame_ = false;
  bool in_message_ = false;
  std::uint8_t type_ = 0;
  std::uint8_t flags_ = 0;
  std::uint32_t stream_ = 0;
  bool header_ends_request_ = false;  ///< the header that is coming in says that nothing follows it
  /// The next part of a header's fields (HPACK, RFC 7541).
  enum class Next : std::uint8_t { kField, kRestOfIndex, kName, kValue, kRestOfLength };
  Next next_ = Next::kField;
  Next after_number_ = Next::kField;
  std::size_t text_left_ = 0;  ///< bytes of a name or value, or before the first field
  std::size_t length_ = 0;     ///< of such a text, as far as it is known
  unsigned length_shift_ = 0;

  std::unordered_map<std::uint32_t, std::size_t> calls_;
  std::size_t calls_bytes_ = 0;  ///< of all `calls_`
  std::size_t other_bytes_ = 0;
  std::uint64_t complete_requests_ = 0;
  std::uint64_t begun_requests_ = 0;
};

}  // namespace topolet::cri
