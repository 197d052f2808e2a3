// One connection to a runtime's NRI socket: calls of the runtime come in, and calls to it go out.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/fronts/nri/mux.hpp"
#include "core/fronts/nri/ttrpc.hpp"

namespace topolet::nri {

/// Takes the payload of an answer, or the error that is answered. Once; any thread.
using Answer = std::function<void(Result<std::string>)>;

/// A connection that somebody else goes on with, in the middle of whatever it was in.
struct ReleasedConnection {
  UniqueFd socket;
  std::string unread;           ///< what has arrived and was not answered, as it would arrive now
  std::uint32_t next_call = 1;  ///< the number of the plugin's next call of the runtime
};

/// Lives on the thread that runs its io_context, but for the answers. What it does with the runtime ends with the first
/// failure, of which it tells.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;
  struct Callbacks {
    /// The runtime calls a method of the plugin. The runtime waits for the answer and does nothing else meanwhile.
    std::function<void(const std::string& method, const std::string& payload, Answer answer)> on_call;
    /// Nothing more comes. Not called after close().
    std::function<void(const Error& why)> on_lost;
  };

  /// `socket`: connected, of `io`.
  Connection(std::shared_ptr<boost::asio::io_context> io, Socket socket, Callbacks callbacks);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// `unread`, `next_call`: of one that was released.
  void start(std::string_view unread = {}, std::uint32_t next_call = 1);
  /// From now on nothing that arrives is taken up; release() hands it on.
  void stop_reading() { is_reading_ = false; }
  /// Nothing that was taken up waits for an answer, or for being sent.
  bool is_idle() const { return unanswered_.empty() && sending_.empty(); }
  /// Ends it here, and leaves it open for whoever goes on. None if it is lost, or was in the middle of sending.
  std::optional<ReleasedConnection> release();
  /// Calls a method of the runtime's service. DEADLINE_EXCEEDED if it does not answer in time, UNAVAILABLE if the
  /// connection is lost before. Never from on_call with an answer that waits for this one: the runtime answers neither.
  void call(const std::string& method, std::string payload, std::chrono::milliseconds timeout, Answer done);
  void close();

 private:
  struct OutgoingCall {
    Answer done;
    std::unique_ptr<boost::asio::steady_timer> deadline;
  };

  void read();
  void take_up(std::string_view received);
  void on_bytes(Channel channel, std::string_view bytes);
  void on_request(std::uint32_t call, const std::string& bytes);
  void respond(std::uint32_t call, const Result<std::string>& result);
  void on_response(std::uint32_t call, const std::string& bytes);
  void send(Channel channel, std::string_view message);
  void write();
  void fail(const Error& why);

  const std::shared_ptr<boost::asio::io_context> io_;  ///< outlives the session's, for answers that come late
  Socket socket_;
  Callbacks callbacks_;
  std::array<char, 64 << 10> buffer_{};
  FrameReader frames_;
  MessageReader requests_;
  MessageReader responses_;
  std::string unsent_;
  std::string sending_;
  std::map<std::uint32_t, OutgoingCall> calls_;
  std::map<std::uint32_t, std::string> unanswered_;  ///< requests of the runtime, by number
  std::uint32_t next_call_ = 1;
  bool is_reading_ = true;
  std::string not_taken_up_;  ///< what has arrived since stop_reading()
  bool is_closed_ = false;
};

}  // namespace topolet::nri
