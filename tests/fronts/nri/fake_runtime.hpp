// The runtime's side of NRI, on a real socket: accepts one plugin at a time and calls it, as containerd does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/fronts/nri/mux.hpp"
#include "core/fronts/nri/ttrpc.hpp"

namespace topolet::nri {

/// Every call blocks for a minute at most, then fails the test.
class FakeRuntime {
 public:
  explicit FakeRuntime(const std::filesystem::path& socket) : path_(socket) { listen(); }
  ~FakeRuntime();

  /// Accepts a connection and answers its RegisterPlugin; returns that request's payload.
  std::string accept_plugin(const Result<std::string>& answer = std::string());
  /// Calls a method of the plugin, in pieces of `piece` bytes, and returns its answer.
  Result<std::string> call(const std::string& method, const std::string& payload, std::size_t piece = 4096);
  /// Sends the call, and does not wait.
  void send_call(const std::string& method, const std::string& payload, std::size_t piece = 4096);
  Result<std::string> await_answer();
  /// The longest payload of a frame that the plugin has sent.
  std::size_t longest_frame() const { return longest_frame_; }
  void send_bytes(const std::string& bytes);
  /// Returns true once the plugin has ended the connection.
  bool is_left_alone();
  void hang_up() { connection_.reset(); }
  /// As at a restart of the runtime.
  void restart();

 private:
  void listen();
  bool read_some();

  std::filesystem::path path_;
  UniqueFd listener_;
  UniqueFd connection_;
  MessageReader requests_;
  MessageReader responses_;
  std::string frame_header_;
  std::size_t frame_left_ = 0;
  std::uint32_t frame_channel_ = 0;
  std::size_t longest_frame_ = 0;
  std::uint32_t next_call_ = 1;
  std::optional<Request> registration_;
  std::uint32_t registration_call_ = 0;
  std::map<std::uint32_t, Result<std::string>> answers_;
};

}  // namespace topolet::nri
