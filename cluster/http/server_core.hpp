// State that the connections of one HttpServer share, whichever version of HTTP they speak.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/http/http_server.hpp"

namespace topolet::http {

/// All that the client tells before the body.
constexpr std::uint32_t kMaxHeaderBytes = 16 << 10;
/// For what a client still sends after a refusal, or after the last answer.
constexpr std::chrono::seconds kDrainTime{2};

using PlainStream = boost::beast::tcp_stream;
using TlsStream = boost::asio::ssl::stream<boost::beast::tcp_stream>;
using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

/// "Payload Too Large" and the like.
HttpResponse refusal_of(boost::beast::http::status status);

struct ServerCore;

/// All functions are called on the server's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(ServerCore& server);
  virtual ~Connection() = default;
  virtual void begin() = 0;
  virtual void close() = 0;
  /// Takes no new requests, and closes when all are answered; at once if the client cannot be told.
  virtual void end() { close(); }
  /// Returns true if all requests are answered.
  virtual bool is_idle() const = 0;
  /// Calls on_due() if it is due by now.
  void run_due();

 protected:
  using Time = std::chrono::steady_clock::time_point;

  Time now() const { return clock_.steady(); }
  /// on_due() is called once so much time from now, and not when was said before.
  void set_due(std::chrono::milliseconds time);
  void set_never_due() { due_ = kNever; }
  /// Cancels the timer for good.
  void end_timer();
  virtual void on_due() = 0;

 private:
  static constexpr Time kNever = Time::max();

  void wake_when_due();

  const Clock& clock_;
  boost::asio::steady_timer wake_;
  Time due_ = kNever;
  Time wakes_ = kNever;  ///< not later than `due_`
  bool has_ended_ = false;
};

/// The result of a TLS handshake.
struct SecureStream {
  TlsStream stream;
  TlsContext context;  ///< the stream needs it as long as it lives
  std::string client_name;
};

struct ServerCore {
  ServerCore(HttpServer::Options server_options, HttpServer::Handlers server_handlers)
      : options(std::move(server_options)), handlers(std::move(server_handlers)) {}

  /// Hands a request on to what answers it, which calls `respond` once, on any thread. False: the method is not served.
  bool dispatch(const std::string& method, HttpRequest request, HttpServer::Handlers::Respond respond);
  /// Returns the headers that every answer has.
  std::vector<std::pair<std::string, std::string>> headers() const;
  /// Returns true if the certificates have changed since: the client must reconnect, and is checked again.
  bool has_changed(const TlsContext& tls) const { return options.tls != nullptr && options.tls->current() != tls; }

  const HttpServer::Options options;
  const HttpServer::Handlers handlers;
  boost::asio::io_context context{1};
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections;  ///< the server's thread's; the oldest first
  boost::asio::thread_pool worker{1};
};

}  // namespace topolet::http
