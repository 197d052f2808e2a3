// A small HTTP server: answers of one piece, and streams of server-sent events, over TLS where it is given
// certificates.
//
// The folder cluster/http: what the programs beside topoletd serve with. Namespace topolet::http.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/http/tls_files.hpp"
#include "core/base/clock.hpp"
#include "core/base/result.hpp"

namespace topolet::http {

struct HttpRequest {
  std::string path;         ///< without the query
  std::string host;         ///< of the header of that name
  std::string body;         ///< of a POST
  std::string client_name;  ///< the common name in the client's certificate; empty without TLS
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// A server-sent event, or several, as streams send them. Made once, it is shared by all streams that send it.
using EventText = std::shared_ptr<const std::string>;
/// `event`: one line without a line break; of `data`, each line becomes one.
EventText make_event(const std::string& event, std::string_view data);

/// Writes a stream of server-sent events. Any thread may call any function.
class EventStream {
 public:
  virtual ~EventStream() = default;
  virtual void send(EventText text) = 0;
  /// Sends what makes all that came before void: what of it waits is left out.
  virtual void begin_anew(EventText text) = 0;
  void send(const std::string& event, const std::string& data) { send(make_event(event, data)); }
};

/// Serves from open() to stop(), on a thread of its own, and what `answer` does on another one.
class HttpServer {
 public:
  struct Options {
    std::string address = {};  ///< "127.0.0.1:9470", "[::1]:9470", "0.0.0.0:0"
    /// The most connections; when there are so many, the oldest idle one is closed for a new one.
    std::size_t max_connections = 64;
    /// The limit on bytes queued for a browser that does not read its stream. Beyond it, data is left out until the
    /// stream is renewed, or the browser is disconnected if streams cannot be renewed.
    std::size_t max_unsent_bytes = 4 << 20;
    std::chrono::seconds request_timeout{10};  ///< of the TLS handshake, the body and the answer, each
    std::chrono::seconds idle_timeout{10};     ///< until a request has begun and its headers have come
    std::uint64_t max_body_bytes = 0;
    /// Only clients with a certificate are served then. Null: no TLS. Must outlive the server.
    TlsFiles* tls = nullptr;
    std::chrono::seconds heartbeat{15};  ///< of streams, so that a dead one is noticed
    /// Sent with every answer, as "Name: value".
    std::vector<std::pair<std::string, std::string>> headers = {};
    Clock clock = {};  ///< of all that is over after a while
  };
  struct Handlers {
    /// Answers a GET. Called for one at a time, on a thread of the server; it may take its time.
    std::function<HttpResponse(const HttpRequest&)> answer;
    /// Answers a POST, on the server's own thread, and must not wait; `respond` may be called later, once, on any
    /// thread. Without it a POST is 405.
    using Respond = std::function<void(HttpResponse)>;
    std::function<void(HttpRequest, Respond)> answer_post = {};
    /// Returns the answer that refuses a TLS client of this name, before its first body is read; nothing to serve it.
    std::function<std::optional<HttpResponse>(const std::string& client_name)> refuse_client = {};
    /// Returns true if a GET is answered with a stream: then begin_stream() is called, and end_stream() with its result
    /// when it has ended. All run on the server's own thread, and must not wait.
    std::function<bool(const HttpRequest&)> is_stream = [](const HttpRequest&) { return false; };
    std::function<std::uint64_t(std::shared_ptr<EventStream>)> begin_stream = {};
    std::function<void(std::uint64_t)> end_stream = {};
    /// Lets a stream begin anew that has left something out, now that all of the rest is sent. On the server's thread.
    std::function<void(std::uint64_t)> renew_stream = {};
  };
  /// INVALID_ARGUMENT if the address cannot be read; UNAVAILABLE if it cannot be listened on.
  static Result<std::unique_ptr<HttpServer>> open(Options options, Handlers handlers);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Returns the address it listens on, with the port that the kernel has chosen for port 0.
  std::string address() const;
  /// Does what is due by the clock, and returns then. For those whose clock passes only when they say so: others need
  /// not call it.
  void run_due();
  void stop();

 private:
  HttpServer();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns true if a Host header is localhost, 127.0.0.1 or [::1], with or without a port. Any other name that leads
/// here belongs to a foreign page that a browser has loaded.
bool is_loopback_host(std::string_view host);

/// An address and a port. INVALID_ARGUMENT says how to write them.
struct ListenAddress {
  std::string host;  ///< a numeric address, without brackets
  unsigned short port = 0;
  bool is_loopback = false;
};
Result<ListenAddress> parse_listen_address(const std::string& text);

}  // namespace topolet::http
