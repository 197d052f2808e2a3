#include "cluster/http/http_server.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <future>
#include <thread>
#include <utility>

#include "cluster/http/http1_connection.hpp"
#include "cluster/http/http2_connection.hpp"
#include "cluster/http/server_core.hpp"

namespace topolet::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// The time for clients to receive their last answers when the server ends.
constexpr std::chrono::milliseconds kLongestEnd{300};
constexpr std::chrono::milliseconds kLookAgain{10};
/// How long nothing is accepted after the process ran out of descriptors.
constexpr std::chrono::milliseconds kPause{100};

/// In the certificate of the other end; empty if it has none.
std::string client_name_of(SSL* ssl) {
  const std::unique_ptr<X509, void (*)(X509*)> certificate(SSL_get1_peer_certificate(ssl), X509_free);
  return certificate ? common_name(certificate.get()) : std::string();
}

bool has_chosen_http2(SSL* ssl) {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &name, &size);
  return std::string_view(reinterpret_cast<const char*>(name), size) == "h2";
}

/// Until it is known which HTTP a client speaks; the connection that does takes its place then.
class TlsHandshake final : public Connection {
 public:
  TlsHandshake(ServerCore& server, std::uint64_t number, tcp::socket socket, const TlsContext& context)
      : Connection(server),
        server_(server),
        number_(number),
        secure_{TlsStream(boost::beast::tcp_stream(std::move(socket)), *context), context, {}} {}

  void begin() override {
    set_due(server_.options.request_timeout);
    secure_.stream.async_handshake(asio::ssl::stream_base::server, [this, kept = shared_from_this()](error_code error) {
      if (!is_open_) return;
      if (error) return close();
      go_on();
    });
  }

  void close() override {
    if (!std::exchange(is_open_, false)) return;
    end_timer();
    secure_.stream.next_layer().close();
    server_.connections.erase(number_);
  }

  bool is_idle() const override { return true; }

 private:
  void on_due() override { close(); }

  void go_on() {
    is_open_ = false;
    end_timer();
    SSL* const ssl = secure_.stream.native_handle();
    secure_.client_name = client_name_of(ssl);
    std::shared_ptr<Connection>& connection = server_.connections[number_];
    if (has_chosen_http2(ssl)) {
      connection = make_http2_connection(server_, number_, std::move(secure_));
    } else {
      connection = std::make_shared<Http1Connection<TlsStream>>(
          server_, number_, std::move(secure_.stream), std::move(secure_.context), std::move(secure_.client_name));
    }
    std::shared_ptr(connection)->begin();
  }

  ServerCore& server_;
  const std::uint64_t number_;
  SecureStream secure_;
  bool is_open_ = true;
};

/// A colon and a number.
bool is_port(std::string_view text) {
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  unsigned short port = 0;
  const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
  return failed == std::errc() && rest == text.data() + text.size();
}

}  // namespace

HttpResponse refusal_of(boost::beast::http::status status) {
  return {static_cast<unsigned>(status), "text/plain; charset=utf-8",
          std::string(boost::beast::http::obsolete_reason(status)) + '\n'};
}

Connection::Connection(ServerCore& server) : clock_(server.options.clock), wake_(server.context) {}

void Connection::set_due(std::chrono::milliseconds time) {
  if (has_ended_) return;
  due_ = now() + time;
  // Waking up early now and then costs less than a timer that is set anew with each request.
  if (due_ < wakes_) wake_when_due();
}

void Connection::end_timer() {
  has_ended_ = true;
  due_ = kNever;
  wake_.cancel();
}

void Connection::wake_when_due() {
  wakes_ = due_;
  wake_.expires_after(due_ - now());
  wake_.async_wait([this, kept = shared_from_this()](error_code error) {
    if (error) return;
    wakes_ = kNever;
    run_due();
  });
}

void Connection::run_due() {
  if (due_ == kNever) return;
  if (now() < due_) {
    if (due_ < wakes_) wake_when_due();
    return;
  }
  due_ = kNever;
  on_due();
}

bool ServerCore::dispatch(const std::string& method, HttpRequest request, HttpServer::Handlers::Respond respond) {
  if (method == "POST" && handlers.answer_post) {
    handlers.answer_post(std::move(request), std::move(respond));
    return true;
  }
  if (!handlers.answer || (method != "GET" && method != "HEAD")) return false;
  asio::post(worker,
             [this, request = std::move(request), respond = std::move(respond)] { respond(handlers.answer(request)); });
  return true;
}

std::vector<std::pair<std::string, std::string>> ServerCore::headers() const {
  std::vector<std::pair<std::string, std::string>> all = options.headers;
  all.emplace_back("Cache-Control", "no-store");
  all.emplace_back("X-Content-Type-Options", "nosniff");
  return all;
}

struct HttpServer::Impl : ServerCore {
  using ServerCore::ServerCore;

  void accept();
  void on_accepted(tcp::socket socket);
  bool close_oldest_idle();
  void stop_when_ended(std::chrono::steady_clock::time_point latest);

  tcp::acceptor acceptor{context};
  asio::steady_timer pause{context};
  std::uint64_t last_connection = 0;
  std::thread thread;
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

void HttpServer::Impl::stop_when_ended(std::chrono::steady_clock::time_point latest) {
  const bool is_due = options.clock.steady() >= latest;
  if (is_due) {
    for (const auto& [number, connection] : std::map(connections)) connection->close();
  }
  if (connections.empty()) return context.stop();
  pause.expires_after(kLookAgain);
  pause.async_wait([this, latest](error_code) { stop_when_ended(latest); });
}

void HttpServer::Impl::on_accepted(tcp::socket socket) {
  if (connections.size() >= options.max_connections && !close_oldest_idle()) return;
  const std::uint64_t number = ++last_connection;
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  std::shared_ptr<Connection> connection;
  if (options.tls != nullptr) {
    connection = std::make_shared<TlsHandshake>(*this, number, std::move(socket), options.tls->current());
  } else {
    connection = std::make_shared<Http1Connection<PlainStream>>(*this, number, PlainStream(std::move(socket)), nullptr,
                                                                std::string());
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

void HttpServer::run_due() {
  std::promise<void> done;
  asio::post(impl_->context, [&] {
    for (const auto& [number, connection] : std::map(impl_->connections)) connection->run_due();
    done.set_value();
  });
  done.get_future().wait();
}

void HttpServer::stop() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->context, [impl = impl_.get()] {
    impl->acceptor.close();
    impl->pause.cancel();
    for (const auto& [number, connection] : std::map(impl->connections)) connection->end();
    impl->stop_when_ended(impl->options.clock.steady() + kLongestEnd);
  });
  impl_->thread.join();
  impl_->worker.join();
}

EventText make_event(const std::string& event, std::string_view data) {
  std::string text = "event: " + event + '\n';
  while (true) {
    const std::size_t end = data.find('\n');
    text.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + 1);
  }
  return std::make_shared<const std::string>(text + '\n');
}

bool is_loopback_host(std::string_view host) {
  const bool has_brackets = host.starts_with('[');
  const std::size_t closing = has_brackets ? host.find(']') : std::string_view::npos;
  if (has_brackets && closing == std::string_view::npos) return false;
  const std::size_t colon = has_brackets ? closing + 1 : host.find(':');
  const std::string_view port = colon < host.size() ? host.substr(colon) : std::string_view();
  if (!port.empty() && !is_port(port)) return false;
  std::string name(host.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  if (!has_brackets) return name == "localhost" || name == "127.0.0.1";
  error_code error;
  const auto address = asio::ip::make_address_v6(name.substr(1, name.size() - 2), error);
  return !error && name.find('%') == std::string::npos && address.is_loopback();
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
