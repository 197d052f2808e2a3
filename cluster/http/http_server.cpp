#include "cluster/http/http_server.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

namespace topolet::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kMaxHeaderBytes = 16 << 10;
/// In all, whoever goes on sending.
constexpr std::chrono::seconds kDrainTime{2};
constexpr std::uint64_t kRefusedBodyBytes = 64 << 10;
/// How long nothing is accepted after the process ran out of descriptors.
constexpr std::chrono::milliseconds kPause{100};

/// As an event stream has it: a line break would begin another field.
std::string event_text(const std::string& event, std::string_view data) {
  std::string text = "event: " + event + '\n';
  while (true) {
    const std::size_t end = data.find('\n');
    text.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + 1);
  }
  return text + '\n';
}

/// The common name in the certificate of the other end; empty if it has none.
std::string common_name(SSL* ssl) {
  const std::unique_ptr<X509, void (*)(X509*)> certificate(SSL_get1_peer_certificate(ssl), X509_free);
  if (!certificate) return {};
  std::array<char, 256> name{};
  const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name.data(),
                                               static_cast<int>(name.size()));
  return length > 0 ? std::string(name.data(), static_cast<std::size_t>(length)) : std::string();
}

using PlainStream = beast::tcp_stream;
using TlsStream = asio::ssl::stream<beast::tcp_stream>;

PlainStream& lowest(PlainStream& stream) { return stream; }
PlainStream& lowest(TlsStream& stream) { return stream.next_layer(); }

}  // namespace

struct HttpServer::Impl {
  class Connection {
   public:
    virtual ~Connection() = default;
    virtual void begin() = 0;
    virtual void push(std::string text) = 0;
    virtual void close() = 0;
    /// Nothing was asked that is not answered.
    virtual bool is_idle() const = 0;
  };
  template <class Stream>
  class Session;

  Impl(Options server_options, Handlers server_handlers)
      : options(std::move(server_options)), handlers(std::move(server_handlers)) {}

  void accept();
  void on_accepted(tcp::socket socket);
  bool close_oldest_idle();
  void add_headers(beast_http::fields& fields) const {
    for (const auto& [name, value] : options.headers) fields.set(name, value);
    fields.set(beast_http::field::cache_control, "no-store");
    fields.set("X-Content-Type-Options", "nosniff");
  }

  const Options options;
  const Handlers handlers;
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  asio::steady_timer pause{context};
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections;  ///< the server's thread's; the oldest first
  std::uint64_t last_connection = 0;
  asio::thread_pool worker{1};
  std::thread thread;
};

/// On the server's thread.
template <class Stream>
class HttpServer::Impl::Session final : public Connection, public std::enable_shared_from_this<Session<Stream>> {
 public:
  /// `tls`: what the stream needs as long as it lives.
  Session(Impl& server, std::uint64_t number, Stream stream, std::shared_ptr<asio::ssl::context> tls)
      : server_(server),
        number_(number),
        tls_(std::move(tls)),
        stream_(std::move(stream)),
        heartbeat_(server.context) {}

  void begin() override {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      lowest(stream_).expires_after(server_.options.request_timeout);
      stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](error_code error) {
        if (error) return self->close();
        self->client_name_ = common_name(self->stream_.native_handle());
        self->read();
      });
    } else {
      read();
    }
  }

  void read() {
    is_waiting_ = true;
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(server_.options.max_body_bytes);
    lowest(stream_).expires_after(server_.options.idle_timeout);
    beast_http::async_read_header(stream_, buffer_, *parser_,
                                  [self = this->shared_from_this()](error_code error, std::size_t) {
                                    self->is_waiting_ = false;
                                    if (error) return self->on_request(error);
                                    self->read_body();
                                  });
  }

  void push(std::string text) override {
    if (!is_open_) return;
    unsent_bytes_ += text.size();
    if (unsent_bytes_ > server_.options.max_unsent_bytes) return close();
    unsent_.push_back(std::move(text));
    if (unsent_.size() == 1) write_next();
  }

  bool is_idle() const override { return is_waiting_; }

  void close() override {
    if (!std::exchange(is_open_, false)) return;
    heartbeat_.cancel();
    error_code ignored;
    lowest(stream_).socket().shutdown(tcp::socket::shutdown_both, ignored);
    lowest(stream_).close();
    if (stream_number_) server_.handlers.end_stream(*stream_number_);
    server_.connections.erase(number_);
  }

 private:
  /// What a follower of the node holds; it may outlive the connection.
  class Events final : public EventStream {
   public:
    Events(asio::io_context& context, std::weak_ptr<Connection> session)
        : context_(context), session_(std::move(session)) {}
    void send(const std::string& event, const std::string& data) override {
      asio::post(context_, [session = session_, text = event_text(event, data)]() mutable {
        if (const auto open = session.lock()) open->push(std::move(text));
      });
    }

   private:
    asio::io_context& context_;
    const std::weak_ptr<Connection> session_;
  };

  void read_body() {
    refusal_.reset();
    const bool has_tls = std::is_same_v<Stream, TlsStream>;
    if (has_tls && server_.handlers.refuse_client) refusal_ = server_.handlers.refuse_client(client_name_);
    // Whoever is refused is read as far as an answer reaches him, and no memory is spent on more.
    if (refusal_) parser_->body_limit(std::min(kRefusedBodyBytes, server_.options.max_body_bytes));
    lowest(stream_).expires_after(server_.options.request_timeout);
    beast_http::async_read(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](error_code error, std::size_t) { self->on_request(error); });
  }

  void on_request(error_code error) {
    if (error == beast_http::error::header_limit) return refuse(beast_http::status::request_header_fields_too_large);
    if (error == beast_http::error::body_limit) return refuse(beast_http::status::payload_too_large);
    if (error) return close();
    if (refusal_) return answer(std::move(*refusal_));
    auto& message = parser_->get();
    const std::string target(message.target());
    HttpRequest request{
        target.substr(0, target.find('?')), std::string(message[beast_http::field::host]), {}, client_name_};
    if (message.method() == beast_http::verb::post && server_.handlers.answer_post) {
      request.body = std::move(message.body());
      return server_.handlers.answer_post(std::move(request), responder());
    }
    const bool is_get = message.method() == beast_http::verb::get || message.method() == beast_http::verb::head;
    if (!is_get || !server_.handlers.answer) return refuse(beast_http::status::method_not_allowed);
    if (message.method() == beast_http::verb::get && server_.handlers.is_stream(request)) return begin_events();
    asio::post(server_.worker, [self = this->shared_from_this(), request = std::move(request)] {
      self->responder()(self->server_.handlers.answer(request));
    });
  }

  /// May be called on any thread, also when the connection is over.
  Handlers::Respond responder() {
    return [self = this->shared_from_this()](HttpResponse response) {
      asio::post(self->server_.context, [self, response = std::move(response)]() mutable {
        if (self->is_open_) self->answer(std::move(response));
      });
    };
  }

  /// Takes what the client still sends: if it were told that the connection is closed, it might not see the answer.
  void drain() {
    error_code ignored;
    lowest(stream_).socket().shutdown(tcp::socket::shutdown_send, ignored);
    lowest(stream_).expires_after(kDrainTime);
    drain_more();
  }
  void drain_more() {
    lowest(stream_).async_read_some(asio::buffer(drained_),
                                    [self = this->shared_from_this()](error_code error, std::size_t) {
                                      if (error) return self->close();
                                      self->drain_more();
                                    });
  }

  void refuse(beast_http::status status) {
    is_unread_ = true;
    parser_.reset();
    answer({static_cast<unsigned>(status), "text/plain; charset=utf-8",
            std::string(beast_http::obsolete_reason(status)) + '\n'});
  }

  /// Of a request that could not be read, nothing that follows can be.
  void answer(HttpResponse made) {
    const bool is_read = parser_.has_value();
    const bool is_head = is_read && parser_->get().method() == beast_http::verb::head;
    response_ = {};
    response_.version(is_read ? parser_->get().version() : 11);
    response_.result(made.status);
    response_.set(beast_http::field::content_type, made.content_type);
    server_.add_headers(response_);
    response_.keep_alive(is_read && parser_->get().keep_alive());
    response_.content_length(made.body.size());
    if (!is_head) response_.body() = std::move(made.body);
    lowest(stream_).expires_after(server_.options.request_timeout);
    beast_http::async_write(stream_, response_, [self = this->shared_from_this()](error_code error, std::size_t) {
      if (!error && self->is_unread_) return self->drain();
      if (error || !self->response_.keep_alive()) return self->close();
      self->read();
    });
  }

  void begin_events() {
    lowest(stream_).expires_never();
    beast_http::fields headers;
    headers.set(beast_http::field::content_type, "text/event-stream");
    server_.add_headers(headers);
    headers.set(beast_http::field::connection, "close");
    std::string head = "HTTP/1.1 200 OK\r\n";
    for (const auto& field : headers) {
      head += std::string(field.name_string()) + ": " + std::string(field.value()) + "\r\n";
    }
    push(head + "\r\n");
    stream_number_ = server_.handlers.begin_stream(std::make_shared<Events>(server_.context, this->weak_from_this()));
    beat();
    wait_for_end();
  }

  void beat() {
    heartbeat_.expires_after(server_.options.heartbeat);
    heartbeat_.async_wait([self = this->shared_from_this()](error_code error) {
      if (error || !self->is_open_) return;
      self->push(":\n\n");
      self->beat();
    });
  }

  /// The client says nothing more: whatever comes is its end.
  void wait_for_end() {
    lowest(stream_).socket().async_wait(tcp::socket::wait_read,
                                        [self = this->shared_from_this()](error_code) { self->close(); });
  }

  void write_next() {
    asio::async_write(stream_, asio::buffer(unsent_.front()),
                      [self = this->shared_from_this()](error_code error, std::size_t) {
                        if (error) return self->close();
                        self->unsent_bytes_ -= self->unsent_.front().size();
                        self->unsent_.pop_front();
                        if (self->is_open_ && !self->unsent_.empty()) self->write_next();
                      });
  }

  Impl& server_;
  const std::uint64_t number_;
  const std::shared_ptr<asio::ssl::context> tls_;
  Stream stream_;
  std::string client_name_;
  std::optional<HttpResponse> refusal_;
  bool is_unread_ = false;  ///< something of the request that is answered
  std::array<char, 4096> drained_{};
  beast::flat_buffer buffer_;
  std::optional<beast_http::request_parser<beast_http::string_body>> parser_;
  beast_http::response<beast_http::string_body> response_;
  asio::steady_timer heartbeat_;
  std::optional<std::uint64_t> stream_number_;
  std::deque<std::string> unsent_;  ///< the first is being written
  std::size_t unsent_bytes_ = 0;
  bool is_open_ = true;
  bool is_waiting_ = true;  ///< for a handshake or a request
};

void HttpServer::Impl::accept() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      on_accepted(std::move(socket));
      return accept();
    }
    pause.expires_after(kPause);
    pause.async_wait([this](error_code aborted) {
      if (!aborted) accept();
    });
  });
}

/// Connections that are only held must not keep out those who want something.
bool HttpServer::Impl::close_oldest_idle() {
  const auto idle =
      std::find_if(connections.begin(), connections.end(), [](const auto& entry) { return entry.second->is_idle(); });
  if (idle == connections.end()) return false;
  const std::shared_ptr<Connection> connection = idle->second;
  connection->close();
  return true;
}

void HttpServer::Impl::on_accepted(tcp::socket socket) {
  if (connections.size() >= options.max_connections && !close_oldest_idle()) return;
  const std::uint64_t number = ++last_connection;
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  std::shared_ptr<Connection> connection;
  if (options.tls != nullptr) {
    const auto tls = options.tls->current();
    connection =
        std::make_shared<Session<TlsStream>>(*this, number, TlsStream(beast::tcp_stream(std::move(socket)), *tls), tls);
  } else {
    connection = std::make_shared<Session<PlainStream>>(*this, number, PlainStream(std::move(socket)), nullptr);
  }
  connections[number] = connection;
  connection->begin();
}

HttpServer::HttpServer() = default;

HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::open(Options options, Handlers handlers) {
  const Result<ListenAddress> address = parse_listen_address(options.address);
  if (!address) return address.error();
  std::unique_ptr<HttpServer> server(new HttpServer());
  server->impl_ = std::make_unique<Impl>(std::move(options), std::move(handlers));
  Impl& impl = *server->impl_;
  const tcp::endpoint endpoint(asio::ip::make_address(address->host), address->port);
  error_code error;
  impl.acceptor.open(endpoint.protocol(), error);
  if (!error) impl.acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) impl.acceptor.bind(endpoint, error);
  if (!error) impl.acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Error{Code::kUnavailable, fmt::format("cannot listen on {}: {}; choose another address or port",
                                                 impl.options.address, error.message())};
  }
  impl.accept();
  impl.thread = std::thread([&impl] { impl.context.run(); });
  return server;
}

std::string HttpServer::address() const {
  const tcp::endpoint endpoint = impl_->acceptor.local_endpoint();
  const std::string host = endpoint.address().to_string();
  return fmt::format("{}:{}", endpoint.address().is_v6() ? '[' + host + ']' : host, endpoint.port());
}

void HttpServer::stop() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->context, [impl = impl_.get()] {
    impl->acceptor.close();
    impl->pause.cancel();
    for (const auto& [number, connection] : std::map(impl->connections)) connection->close();
    impl->context.stop();
  });
  impl_->thread.join();
  impl_->worker.join();
}

bool is_loopback_host(std::string_view host) {
  const bool has_brackets = host.starts_with('[');
  const std::string_view name = has_brackets ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

Result<ListenAddress> parse_listen_address(const std::string& text) {
  const Error bad{Code::kInvalidArgument,
                  "'" + text +
                      "' is not an address to listen on; write ADDRESS:PORT, such as 127.0.0.1:9470, "
                      "[::1]:9470 or 0.0.0.0:9470"};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad;
  std::string host = text.substr(0, colon);
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (has_brackets) host = host.substr(1, host.size() - 2);
  unsigned short port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data() + colon + 1, end, port);
  error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (failed != std::errc() || rest != end || error || address.is_v6() != has_brackets) return bad;
  return ListenAddress{host, port, address.is_loopback()};
}

}  // namespace topolet::http
