// A connection that speaks HTTP/1.1: one request after the other, and streams of server-sent events.
#pragma once

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <optional>
#include <string_view>
#include <type_traits>

#include "cluster/http/server_core.hpp"

namespace topolet::http {

inline PlainStream& lowest(PlainStream& stream) { return stream; }
inline PlainStream& lowest(TlsStream& stream) { return stream.next_layer(); }

/// On the server's thread. `Stream`: PlainStream or TlsStream.
template <class Stream>
class Http1Connection final : public Connection {
 public:
  /// `tls`: what the stream needs as long as it lives; null without TLS.
  Http1Connection(ServerCore& server, std::uint64_t number, Stream stream, TlsContext tls, std::string client_name)
      : Connection(server),
        server_(server),
        number_(number),
        tls_(std::move(tls)),
        stream_(std::move(stream)),
        client_name_(std::move(client_name)) {}

  void begin() override { read(); }
  bool is_idle() const override { return is_waiting_; }

  void close() override {
    if (!std::exchange(is_open_, false)) return;
    end_timer();
    ErrorCode ignored;
    lowest(stream_).socket().shutdown(Tcp::socket::shutdown_both, ignored);
    lowest(stream_).close();
    if (stream_number_) server_.handlers.end_stream(*stream_number_);
    server_.connections.erase(number_);
  }

 private:
  using ErrorCode = boost::system::error_code;
  using Tcp = boost::asio::ip::tcp;
  using HttpStatus = boost::beast::http::status;
  using HttpField = boost::beast::http::field;
  using HttpVerb = boost::beast::http::verb;
  using HttpError = boost::beast::http::error;

  static constexpr std::uint64_t kRefusedBodyBytes = 64 << 10;
  /// Heartbeats after which a stream ends whose reader has not taken what was being sent to it then.
  static constexpr int kMostBeatsUnread = 8;

  std::shared_ptr<Http1Connection> kept() { return std::static_pointer_cast<Http1Connection>(shared_from_this()); }

  void on_due() override {
    if (!stream_number_) return close();
    if (!unsent_.empty() && ++beats_unread_ > kMostBeatsUnread) return close();
    static const EventText kHeartbeat = std::make_shared<const std::string>(":\n\n");
    push(kHeartbeat, false);
    set_due(server_.options.heartbeat);
  }

  /// The stream that is handed to the handlers; it may outlive the connection.
  class Events final : public EventStream {
   public:
    Events(boost::asio::io_context& context, std::weak_ptr<Http1Connection> connection)
        : context_(context), connection_(std::move(connection)) {}
    using EventStream::send;
    void send(EventText text) override { post(std::move(text), false); }
    void begin_anew(EventText text) override { post(std::move(text), true); }

   private:
    void post(EventText text, bool begins_anew) {
      boost::asio::post(context_, [connection = connection_, text = std::move(text), begins_anew]() mutable {
        if (const auto open = connection.lock()) open->push(std::move(text), begins_anew);
      });
    }

    boost::asio::io_context& context_;
    const std::weak_ptr<Http1Connection> connection_;
  };

  void read() {
    is_waiting_ = true;
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(server_.options.max_body_bytes);
    set_due(server_.options.idle_timeout);
    boost::beast::http::async_read_header(stream_, buffer_, *parser_, [self = kept()](ErrorCode failed, std::size_t) {
      self->is_waiting_ = false;
      if (failed) return self->on_request(failed);
      self->read_body();
    });
  }

  void read_body() {
    refusal_.reset();
    const bool has_tls = std::is_same_v<Stream, TlsStream>;
    if (has_tls && server_.handlers.refuse_client) refusal_ = server_.handlers.refuse_client(client_name_);
    // Whoever is refused is read as far as an answer reaches him, and no memory is spent on more.
    if (refusal_) parser_->body_limit(std::min(kRefusedBodyBytes, server_.options.max_body_bytes));
    set_due(server_.options.request_timeout);
    boost::beast::http::async_read(stream_, buffer_, *parser_,
                                   [self = kept()](ErrorCode failed, std::size_t) { self->on_request(failed); });
  }

  void on_request(ErrorCode failed) {
    if (failed == HttpError::header_limit) return refuse(HttpStatus::request_header_fields_too_large);
    if (failed == HttpError::body_limit) return refuse(HttpStatus::payload_too_large);
    if (failed) return close();
    if (refusal_) return answer(std::move(*refusal_));
    set_never_due();  // whoever answers may take his time
    auto& message = parser_->get();
    const std::string target(message.target());
    // With two Host headers it is not known which one counts.
    const std::string host = message.count(HttpField::host) == 1 ? std::string(message[HttpField::host]) : "";
    HttpRequest request{target.substr(0, target.find('?')), host, std::move(message.body()), client_name_};
    const bool is_stream =
        message.method() == HttpVerb::get && server_.handlers.answer && server_.handlers.is_stream(request);
    if (is_stream) return begin_events();
    if (!server_.dispatch(std::string(message.method_string()), std::move(request), responder()))
      refuse(HttpStatus::method_not_allowed);
  }

  /// May be called on any thread, also when the connection is over.
  HttpServer::Handlers::Respond responder() {
    return [self = kept()](HttpResponse response) {
      boost::asio::post(self->server_.context, [self, response = std::move(response)]() mutable {
        if (self->is_open_) self->answer(std::move(response));
      });
    };
  }

  /// Takes the rest that the client sends: if the connection were closed at once, it might not see the answer.
  void drain() {
    ErrorCode ignored;
    lowest(stream_).socket().shutdown(Tcp::socket::shutdown_send, ignored);
    set_due(kDrainTime);
    drain_more();
  }
  void drain_more() {
    lowest(stream_).async_read_some(boost::asio::buffer(drained_), [self = kept()](ErrorCode failed, std::size_t) {
      if (failed) return self->close();
      self->drain_more();
    });
  }

  void refuse(HttpStatus code) {
    is_unread_ = true;
    parser_.reset();
    answer(refusal_of(code));
  }

  /// Sends an answer. After a request that could not be read, the connection is closed.
  void answer(HttpResponse made) {
    const bool is_read = parser_.has_value();
    const bool is_head = is_read && parser_->get().method() == HttpVerb::head;
    response_ = {};
    response_.version(is_read ? parser_->get().version() : 11);
    response_.result(made.status);
    response_.set(HttpField::content_type, made.content_type);
    for (const auto& [name, value] : server_.headers()) response_.set(name, value);
    response_.keep_alive(is_read && parser_->get().keep_alive() && !server_.has_changed(tls_));
    response_.content_length(made.body.size());
    if (!is_head) response_.body() = std::move(made.body);
    set_due(server_.options.request_timeout);
    boost::beast::http::async_write(stream_, response_, [self = kept()](ErrorCode failed, std::size_t) {
      if (!failed && self->is_unread_) return self->drain();
      if (failed || !self->response_.keep_alive()) return self->close();
      self->read();
    });
  }

  void begin_events() {
    std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
    for (const auto& [name, value] : server_.headers()) head += name + ": " + value + "\r\n";
    push(std::make_shared<const std::string>(head + "\r\n"), false);
    stream_number_ = server_.handlers.begin_stream(std::make_shared<Events>(server_.context, kept()));
    set_due(server_.options.heartbeat);
    wait_for_end();
  }

  /// The client says nothing more: whatever comes is its end.
  void wait_for_end() {
    lowest(stream_).socket().async_wait(Tcp::socket::wait_read, [self = kept()](ErrorCode) { self->close(); });
  }

  void push(EventText text, bool begins_anew) {
    if (!is_open_) return;
    if (begins_anew) {
      drop_waiting();
      is_behind_ = false;
    } else if (is_behind_) {
      return;
    } else if (!unsent_.empty() && unsent_bytes_ + text->size() > server_.options.max_unsent_bytes) {
      if (!server_.handlers.renew_stream) return close();
      drop_waiting();
      is_behind_ = true;
      return;
    }
    unsent_bytes_ += text->size();
    unsent_.push_back(std::move(text));
    if (unsent_.size() == 1) write_next();
  }

  /// Drops all but the text that is being written now.
  void drop_waiting() {
    while (unsent_.size() > 1) {
      unsent_bytes_ -= unsent_.back()->size();
      unsent_.pop_back();
    }
  }

  void write_next() {
    boost::asio::async_write(stream_, boost::asio::buffer(*unsent_.front()),
                             [self = kept()](ErrorCode failed, std::size_t) {
                               if (failed) return self->close();
                               self->unsent_bytes_ -= self->unsent_.front()->size();
                               self->unsent_.pop_front();
                               self->beats_unread_ = 0;
                               if (!self->is_open_) return;
                               if (!self->unsent_.empty()) return self->write_next();
                               if (self->is_behind_) self->server_.handlers.renew_stream(*self->stream_number_);
                             });
  }

  ServerCore& server_;
  const std::uint64_t number_;
  const TlsContext tls_;
  Stream stream_;
  const std::string client_name_;
  std::optional<HttpResponse> refusal_;
  bool is_unread_ = false;  ///< something of the request that is answered
  std::array<char, 4096> drained_{};
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  boost::beast::http::response<boost::beast::http::string_body> response_;
  std::optional<std::uint64_t> stream_number_;
  std::deque<EventText> unsent_;  ///< the first is being written
  std::size_t unsent_bytes_ = 0;
  bool is_behind_ = false;  ///< something was left out, and so is all that comes until it begins anew
  int beats_unread_ = 0;
  bool is_open_ = true;
  bool is_waiting_ = true;  ///< for a request
};

}  // namespace topolet::http
