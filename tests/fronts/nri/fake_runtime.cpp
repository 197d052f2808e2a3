#include "tests/fronts/nri/fake_runtime.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "core/base/unix_address.hpp"
#include "core/fronts/nri/big_endian.hpp"

namespace topolet::nri {
namespace {

constexpr int kPatienceMs = 60000;

bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, kPatienceMs) == 1;
}

}  // namespace

FakeRuntime::~FakeRuntime() { std::filesystem::remove(path_); }

void FakeRuntime::listen() {
  std::filesystem::remove(path_);
  listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = unix_address(path_.string());
  ASSERT_TRUE(address.has_value());
  ASSERT_EQ(::bind(listener_.get(), as_sockaddr(*address), sizeof *address), 0);
  ASSERT_EQ(::listen(listener_.get(), 4), 0);
}

void FakeRuntime::restart() {
  hang_up();
  listener_.reset();
  std::filesystem::remove(path_);
  listen();
}

std::string FakeRuntime::accept_plugin(const Result<std::string>& answer) {
  EXPECT_TRUE(is_readable(listener_.get()));
  connection_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  requests_ = {};
  responses_ = {};
  frame_header_.clear();
  frame_left_ = 0;
  answers_.clear();
  registration_.reset();
  while (!registration_) {
    if (!read_some()) return "";
  }
  std::string message;
  EXPECT_TRUE(append_message(registration_call_, MessageType::kResponse, encode_response(answer), message).has_value());
  std::string frames;
  append_frames(Channel::kRuntime, message, frames);
  send_bytes(frames);
  EXPECT_EQ(registration_->method, "RegisterPlugin");
  EXPECT_EQ(registration_->service, "nri.pkg.api.v1alpha1.Runtime");
  return registration_->payload;
}

void FakeRuntime::send_bytes(const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(connection_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    ASSERT_GT(count, 0);
    sent += static_cast<std::size_t>(count);
  }
}

void FakeRuntime::send_call(const std::string& method, const std::string& payload, std::size_t piece) {
  std::string message;
  ASSERT_TRUE(append_message(next_call_, MessageType::kRequest,
                             encode(Request{"nri.pkg.api.v1alpha1.Plugin", method, payload, 0}), message)
                  .has_value());
  std::string frames;
  for (std::size_t begin = 0; begin < message.size(); begin += piece) {
    const std::string part = message.substr(begin, piece);
    append_big_endian(static_cast<std::uint32_t>(Channel::kPlugin), frames);
    append_big_endian(static_cast<std::uint32_t>(part.size()), frames);
    frames += part;
  }
  send_bytes(frames);
}

Result<std::string> FakeRuntime::await_answer() {
  const std::uint32_t call = next_call_;
  next_call_ += 2;
  while (answers_.count(call) == 0) {
    if (!read_some()) return Error{Code::kUnavailable, "the plugin has hung up, or does not answer"};
  }
  return answers_.at(call);
}

Result<std::string> FakeRuntime::call(const std::string& method, const std::string& payload, std::size_t piece) {
  send_call(method, payload, piece);
  return await_answer();
}

bool FakeRuntime::is_left_alone() {
  while (read_some()) {
  }
  return true;
}

bool FakeRuntime::read_some() {
  if (!is_readable(connection_.get())) {
    ADD_FAILURE() << "the plugin sends nothing";
    return false;
  }
  std::array<char, 8192> buffer{};
  const ssize_t count = ::recv(connection_.get(), buffer.data(), buffer.size(), 0);
  if (count <= 0) return false;
  std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
  while (!bytes.empty()) {
    if (frame_left_ == 0) {
      frame_header_.push_back(bytes.front());
      bytes.remove_prefix(1);
      if (frame_header_.size() < 8) continue;
      frame_channel_ = read_big_endian(frame_header_.data());
      frame_left_ = read_big_endian(frame_header_.data() + 4);
      longest_frame_ = std::max(longest_frame_, frame_left_);
      frame_header_.clear();
      continue;
    }
    const std::string_view payload = bytes.substr(0, frame_left_);
    frame_left_ -= payload.size();
    bytes.remove_prefix(payload.size());
    const bool is_answer = frame_channel_ == static_cast<std::uint32_t>(Channel::kPlugin);
    const Status read = (is_answer ? responses_ : requests_)
                            .read(payload, [&](std::uint32_t call, MessageType type, const std::string& message) {
                              if (is_answer) {
                                EXPECT_EQ(type, MessageType::kResponse);
                                answers_.emplace(call, decode_response(message));
                                return;
                              }
                              EXPECT_EQ(type, MessageType::kRequest);
                              registration_call_ = call;
                              registration_ = decode_request(message).value();
                            });
    EXPECT_TRUE(read.has_value());
  }
  return true;
}

}  // namespace topolet::nri
