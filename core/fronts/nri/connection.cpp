#include "core/fronts/nri/connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace topolet::nri {
namespace {

constexpr const char* kRuntimeService = "nri.pkg.api.v1alpha1.Runtime";

}  // namespace

Connection::Connection(std::shared_ptr<boost::asio::io_context> io, Socket socket, Callbacks callbacks)
    : io_(std::move(io)), socket_(std::move(socket)), callbacks_(std::move(callbacks)) {}

void Connection::start(std::string_view unread, std::uint32_t next_call) {
  next_call_ = next_call;
  take_up(unread);
  if (!is_closed_) read();
}

void Connection::read() {
  socket_.async_read_some(
      boost::asio::buffer(buffer_), [self = shared_from_this()](boost::system::error_code error, std::size_t length) {
        if (self->is_closed_) return;
        if (error) return self->fail({Code::kUnavailable, "the runtime has ended the connection: " + error.message()});
        const std::string_view received(self->buffer_.data(), length);
        if (!self->is_reading_) {
          self->not_taken_up_ += received;
          return;
        }
        self->take_up(received);
        if (!self->is_closed_) self->read();
      });
}

void Connection::take_up(std::string_view received) {
  frames_.read(received, [this](Channel channel, std::string_view bytes) { on_bytes(channel, bytes); });
}

void Connection::on_bytes(Channel channel, std::string_view bytes) {
  if (is_closed_) return;
  const bool is_call = channel == Channel::kPlugin;
  MessageReader& reader = is_call ? requests_ : responses_;
  const Status read = reader.read(bytes, [&](std::uint32_t call, MessageType type, const std::string& payload) {
    if (is_closed_) return;
    if (is_call && type == MessageType::kRequest) on_request(call, payload);
    if (!is_call && type == MessageType::kResponse) on_response(call, payload);
  });
  if (!read) fail(read.error());
}

void Connection::on_request(std::uint32_t call, const std::string& bytes) {
  // Whoever answers may do so when the connection is gone.
  const Answer answer = [weak = weak_from_this(), call](Result<std::string> result) {
    const std::shared_ptr<Connection> self = weak.lock();
    if (!self) return;
    boost::asio::post(*self->io_, [weak, call, result = std::move(result)] {
      if (const std::shared_ptr<Connection> connection = weak.lock()) connection->respond(call, result);
    });
  };
  unanswered_[call] = bytes;
  const Result<Request> request = decode_request(bytes);
  if (!request) return answer(request.error());
  callbacks_.on_call(request->method, request->payload, answer);
}

void Connection::respond(std::uint32_t call, const Result<std::string>& result) {
  unanswered_.erase(call);
  std::string message;
  const Status appended = append_message(call, MessageType::kResponse, encode_response(result), message);
  // Silence would cost the runtime its patience, and topolet its connection. A sentence always fits.
  if (!appended) (void)append_message(call, MessageType::kResponse, encode_response(appended.error()), message);
  send(Channel::kPlugin, message);
}

void Connection::on_response(std::uint32_t call, const std::string& bytes) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;  // it was given up
  const Answer done = std::move(found->second.done);
  calls_.erase(found);
  done(decode_response(bytes));
}

void Connection::call(const std::string& method, std::string payload, std::chrono::milliseconds timeout, Answer done) {
  if (is_closed_) return done(Error{Code::kUnavailable, "there is no connection to the runtime's NRI socket"});
  const std::uint32_t number = std::exchange(next_call_, next_call_ + 2);
  std::string message;
  const Status appended = append_message(
      number, MessageType::kRequest,
      encode(Request{kRuntimeService, method, std::move(payload), std::chrono::nanoseconds(timeout).count()}), message);
  if (!appended) return done(appended.error());
  auto deadline = std::make_unique<boost::asio::steady_timer>(socket_.get_executor(), timeout);
  deadline->async_wait([self = shared_from_this(), number, method](boost::system::error_code error) {
    const auto found = self->calls_.find(number);
    if (error || found == self->calls_.end()) return;
    const Answer late = std::move(found->second.done);
    self->calls_.erase(found);
    late(Error{Code::kDeadlineExceeded, "the runtime does not answer " + method});
  });
  calls_.emplace(number, OutgoingCall{std::move(done), std::move(deadline)});
  send(Channel::kRuntime, message);
}

void Connection::send(Channel channel, std::string_view message) {
  if (is_closed_) return;
  append_frames(channel, message, unsent_);
  if (sending_.empty()) write();
}

void Connection::write() {
  sending_ = std::exchange(unsent_, {});
  boost::asio::async_write(socket_, boost::asio::buffer(sending_),
                           [self = shared_from_this()](boost::system::error_code error, std::size_t) {
                             if (self->is_closed_) return;
                             if (error)
                               return self->fail({Code::kUnavailable, "the runtime does not read: " + error.message()});
                             self->sending_.clear();
                             if (!self->unsent_.empty()) self->write();
                           });
}

std::optional<ReleasedConnection> Connection::release() {
  if (is_closed_ || !sending_.empty()) return std::nullopt;
  ReleasedConnection released;
  for (const auto& [call, bytes] : unanswered_) {
    std::string message;
    if (!append_message(call, MessageType::kRequest, bytes, message)) return std::nullopt;
    append_frames(Channel::kPlugin, message, released.unread);
  }
  append_frames(Channel::kPlugin, requests_.pending(), released.unread);
  append_frames(Channel::kRuntime, responses_.pending(), released.unread);
  released.unread += frames_.position() + not_taken_up_;
  released.next_call = next_call_;
  boost::system::error_code error;
  released.socket.reset(socket_.release(error));
  close();
  if (error) return std::nullopt;
  return released;
}

void Connection::fail(const Error& why) {
  if (is_closed_) return;
  const auto on_lost = callbacks_.on_lost;
  close();
  on_lost(why);
}

void Connection::close() {
  if (std::exchange(is_closed_, true)) return;
  boost::system::error_code ignored;
  socket_.close(ignored);
  const std::map<std::uint32_t, OutgoingCall> calls = std::exchange(calls_, {});
  for (const auto& [number, call] : calls)
    call.done(Error{Code::kUnavailable, "the connection to the runtime's NRI socket is lost"});
  callbacks_ = {};
}

}  // namespace topolet::nri
