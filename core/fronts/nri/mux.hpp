// Several channels on one connection, as the runtimes' Node Resource Interface (NRI) has them: frames of four bytes for
// the channel, four for the length, both big-endian, and the payload. A channel is a stream of bytes; where its frames
// end means nothing.
//
// The room core/fronts/nri, namespace topolet::nri: speaks NRI with containerd and CRI-O, as a plugin of theirs. It may
// include core/base and core/operations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace topolet::nri {

/// The service that is called on a channel. Other numbers are not used.
enum class Channel : std::uint32_t {
  kPlugin = 1,   ///< the plugin's; the runtime calls
  kRuntime = 2,  ///< the runtime's; the plugin calls
};

/// The most bytes that the frame of a plugin may carry: the runtimes read frames into a buffer of this size, and close
/// the connection at a longer one (bufio of Go, in NRI's pkg/net/multiplex). What they send themselves may be longer.
constexpr std::size_t kMaxFrameBytes = 4096;

/// The most frames of one channel that may arrive before the runtime has read the first one: it closes the connection
/// when its queue of 256 is full (readQueueLen in NRI's pkg/net/multiplex).
constexpr std::size_t kMaxUnreadFrames = 255;

/// Appends the bytes to `out` as frames of the channel; none for no bytes.
void append_frames(Channel channel, std::string_view bytes, std::string& out);

/// Takes frames apart as they arrive, in pieces of any size. It keeps no payload, so that no length is too large.
class FrameReader {
 public:
  using OnBytes = std::function<void(Channel channel, std::string_view bytes)>;

  /// Calls `on_bytes` with what `received` carries for each channel, in order; what is for other channels is dropped.
  void read(std::string_view received, const OnBytes& on_bytes);
  /// Returns bytes that bring a new reader to where this one is, in the middle of a frame or of its header.
  std::string position() const;

 private:
  static constexpr std::size_t kHeaderBytes = 8;

  std::array<char, kHeaderBytes> header_{};
  std::size_t header_length_ = 0;  ///< of it, what has arrived
  std::uint32_t channel_ = 0;
  std::uint32_t payload_left_ = 0;
};

}  // namespace topolet::nri
