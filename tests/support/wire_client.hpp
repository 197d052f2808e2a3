// An HTTP/2 client that writes frames by hand: what a well-behaved gRPC library would not send.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/unique_fd.hpp"

namespace topolet::testing {

/// Blocks in every function; gives up reading after a minute, as if the other side had closed. Writing to a connection
/// that the other side has closed is not an error: see is_open().
class WireClient {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  /// Connects to the unix socket, and says hello unless `silent`.
  explicit WireClient(const std::string& path, bool silent = false);

  /// The header of a call, with `more` fields (texts below 128 bytes); `last` = no more header frames follow.
  void call(const std::string& path, const Fields& more = {}, std::uint8_t stream = 1, bool last = true);
  /// A header frame that continues one, with fields again.
  void continue_header(const Fields& fields, std::uint8_t stream = 1, bool last = false);
  /// The bytes of one, to be sent by raw() again and again.
  static std::string continuation(const Fields& fields, std::uint8_t stream = 1, bool last = false);
  /// Lengths below 256 only.
  void message(const std::string& bytes, bool last, std::uint8_t stream = 1);
  void half_close(std::uint8_t stream = 1);
  void raw(const std::string& bytes);

  /// Blocks until the header of an answer has come; false if the connection has ended.
  bool wait_for_answer();
  /// Blocks until a call's trailers have come; false if the connection has ended.
  bool wait_for_end();
  /// Blocks until the other side has reset a call; false if the connection has ended.
  bool wait_for_reset();
  /// Blocks until the other side has closed, without reading what is there; false if it does not.
  bool wait_for_hang_up() const;
  /// False once a write found the other side closed.
  bool is_open() const { return open_; }
  /// The descriptor is the caller's now, and the connection stays open.
  UniqueFd release() { return std::move(socket_); }

 private:
  bool wait_for_frame(std::uint8_t type, std::uint8_t flag);
  std::string receive(std::size_t size) const;

  UniqueFd socket_;
  bool open_ = true;
};

}  // namespace topolet::testing
