#include "cluster/http/http2_connection.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

namespace topolet::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using StreamId = std::int32_t;
using HttpStatus = boost::beast::http::status;

constexpr std::uint32_t kMaxStreams = 250;
constexpr std::int32_t kStreamWindowBytes = 1 << 20;
constexpr std::int32_t kConnectionWindowBytes = 4 << 20;
/// The limit on received bodies of requests that are not answered yet, in bodies of the largest size.
constexpr std::uint64_t kMaxBodiesUnderway = 2;
constexpr std::size_t kReadBytes = 16 << 10;
constexpr std::size_t kWriteBytes = 64 << 10;
constexpr std::size_t kLongestMethod = 16;
constexpr std::chrono::milliseconds kShortestLook{100};
/// The size of a header beside its name and value, as RFC 9113 counts it.
constexpr std::size_t kHeaderOverheadBytes = 32;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

/// On the server's thread. Callbacks of nghttp2 only take notes, which are acted upon when it has returned.
class Http2Connection final : public Connection {
 public:
  Http2Connection(ServerCore& server, std::uint64_t number, SecureStream secure)
      : Connection(server), server_(server), number_(number), secure_(std::move(secure)) {}

  void begin() override {
    if (!begin_session()) return close();
    send();
    read();
    look_later();
  }

  void close() override {
    if (!std::exchange(is_open_, false)) return;
    end_timer();
    auto& socket = secure_.stream.next_layer().socket();
    error_code ignored;
    socket.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    secure_.stream.next_layer().close();
    server_.connections.erase(number_);
  }

  void end() override {
    is_ending_ = true;
    send();
  }

  bool is_idle() const override {
    return !is_writing_ &&
           std::none_of(streams_.begin(), streams_.end(), [](const auto& entry) { return entry.second.is_admitted; });
  }

 private:
  /// One request and its answer.
  struct Stream {
    std::string method;
    HttpRequest request;
    std::size_t header_bytes = 0;
    std::size_t body_bytes = 0;  ///< that were received, and are not answered yet
    std::optional<HttpResponse> refusal;
    bool is_admitted = false;     ///< its headers are complete, and it is not refused
    bool is_handed_over = false;  ///< to whoever answers it
    bool is_answered = false;
    std::string body;  ///< of the answer
    std::size_t sent_bytes = 0;
    Time due{};  ///< by then the request has been received; or the answer, if there is one
  };

  bool begin_session();
  void on_headers_begin(StreamId id);
  void on_header(StreamId id, std::string_view name, std::string_view value);
  void on_headers_end(StreamId id);
  void on_data(StreamId id, std::string_view data);
  void on_request_end(StreamId id);
  void on_stream_end(StreamId id);
  Stream* find(StreamId id) {
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : &found->second;
  }
  void refuse(StreamId id, Stream& stream, HttpResponse response);
  void forget_body(Stream& stream);

  void read();
  void send();
  void drain();
  void hand_over();
  void hand_over(StreamId id, Stream& stream);
  HttpServer::Handlers::Respond responder(StreamId id);
  void answer(StreamId id, HttpResponse response);
  void look_later();
  void on_due() override;
  void look();
  std::size_t read_body(StreamId id, std::uint8_t* to, std::size_t size, std::uint32_t* flags);

  std::shared_ptr<Http2Connection> kept() { return std::static_pointer_cast<Http2Connection>(shared_from_this()); }
  static Http2Connection& self(void* user) { return *static_cast<Http2Connection*>(user); }

  ServerCore& server_;
  const std::uint64_t number_;
  SecureStream secure_;
  std::unique_ptr<nghttp2_session, void (*)(nghttp2_session*)> session_{nullptr, nghttp2_session_del};
  std::map<StreamId, Stream> streams_;
  std::vector<StreamId> ready_;            ///< received or refused, and not answered
  std::uint64_t received_body_bytes_ = 0;  ///< of requests that are not answered yet
  std::vector<std::uint8_t> in_ = std::vector<std::uint8_t>(kReadBytes);
  std::string out_;  ///< what is being written
  bool is_writing_ = false;
  bool is_ending_ = false;  ///< the client is to begin anew on another connection
  bool has_told_end_ = false;
  bool is_draining_ = false;  ///< all is said; the client may not have read it yet
  bool is_open_ = true;
  Time last_heard_ = now();
  Time writing_since_{};
};

bool Http2Connection::begin_session() {
  nghttp2_session_callbacks* made = nullptr;
  if (nghttp2_session_callbacks_new(&made) != 0) return false;
  const std::unique_ptr<nghttp2_session_callbacks, void (*)(nghttp2_session_callbacks*)> callbacks(
      made, nghttp2_session_callbacks_del);
  nghttp2_session_callbacks_set_on_begin_headers_callback(made,
                                                          [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
                                                            if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
                                                              self(user).on_headers_begin(frame->hd.stream_id);
                                                            return 0;
                                                          });
  nghttp2_session_callbacks_set_on_header_callback(
      made, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
               const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
        self(user).on_header(frame->hd.stream_id, {reinterpret_cast<const char*>(name), name_size},
                             {reinterpret_cast<const char*>(value), value_size});
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      made, [](nghttp2_session*, std::uint8_t, StreamId id, const std::uint8_t* data, std::size_t size, void* user) {
        self(user).on_data(id, {reinterpret_cast<const char*>(data), size});
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      made, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        const StreamId id = frame->hd.stream_id;
        if (frame->hd.type == NGHTTP2_HEADERS) self(user).on_headers_end(id);
        const bool has_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        if (has_end && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
          self(user).on_request_end(id);
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(made,
                                                         [](nghttp2_session*, StreamId id, std::uint32_t, void* user) {
                                                           self(user).on_stream_end(id);
                                                           return 0;
                                                         });
  nghttp2_session* session = nullptr;
  if (nghttp2_session_server_new(&session, made, this) != 0) return false;
  session_.reset(session);
  const std::array<nghttp2_settings_entry, 3> settings{{{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kMaxStreams},
                                                        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindowBytes},
                                                        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMaxHeaderBytes}}};
  return nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0 &&
         nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindowBytes) == 0;
}

void Http2Connection::on_headers_begin(StreamId id) {
  Stream& stream = streams_[id];
  stream.request.client_name = secure_.client_name;
  stream.due = now() + server_.options.request_timeout;
}

void Http2Connection::on_header(StreamId id, std::string_view name, std::string_view value) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;
  stream->header_bytes += name.size() + value.size() + kHeaderOverheadBytes;
  if (stream->header_bytes > kMaxHeaderBytes) return;
  if (name == ":method") {
    stream->method = value.substr(0, kLongestMethod);
  } else if (name == ":path") {
    stream->request.path = value.substr(0, value.find('?'));
  } else if (name == ":authority" || name == "host") {
    stream->request.host = value;
  }
}

/// A client that may not call, or that sends too much, is answered without its body.
void Http2Connection::on_headers_end(StreamId id) {
  Stream* const stream = find(id);
  // Trailers, too, are headers.
  if (stream == nullptr || stream->refusal) return;
  if (stream->header_bytes > kMaxHeaderBytes)
    return refuse(id, *stream, refusal_of(HttpStatus::request_header_fields_too_large));
  stream->is_admitted = true;
  if (!server_.handlers.refuse_client) return;
  if (auto refusal = server_.handlers.refuse_client(secure_.client_name)) refuse(id, *stream, *std::move(refusal));
}

void Http2Connection::on_data(StreamId id, std::string_view data) {
  Stream* const stream = find(id);
  if (stream == nullptr || stream->refusal || stream->is_answered) return;
  const std::uint64_t most = server_.options.max_body_bytes;
  if (stream->request.body.size() + data.size() > most)
    return refuse(id, *stream, refusal_of(HttpStatus::payload_too_large));
  if (received_body_bytes_ + data.size() > kMaxBodiesUnderway * most)
    return refuse(id, *stream, refusal_of(HttpStatus::service_unavailable));
  stream->request.body += data;
  stream->body_bytes += data.size();
  received_body_bytes_ += data.size();
}

void Http2Connection::on_request_end(StreamId id) {
  const Stream* const stream = find(id);
  if (stream != nullptr && !stream->refusal) ready_.push_back(id);
}

void Http2Connection::on_stream_end(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  forget_body(found->second);
  streams_.erase(found);
  last_heard_ = now();
}

void Http2Connection::refuse(StreamId id, Stream& stream, HttpResponse response) {
  if (stream.refusal || stream.is_answered) return;
  forget_body(stream);
  stream.request = {};
  stream.is_admitted = false;
  stream.refusal = std::move(response);
  ready_.push_back(id);
}

void Http2Connection::forget_body(Stream& stream) { received_body_bytes_ -= std::exchange(stream.body_bytes, 0); }

void Http2Connection::read() {
  secure_.stream.async_read_some(asio::buffer(in_), [connection = kept()](error_code error, std::size_t size) {
    if (!connection->is_open_) return;
    if (error) return connection->close();
    if (connection->is_draining_) return connection->read();
    connection->last_heard_ = connection->now();
    if (nghttp2_session_mem_recv(connection->session_.get(), connection->in_.data(), size) < 0)
      return connection->close();
    connection->hand_over();
    connection->send();
    if (connection->is_open_) connection->read();
  });
}

/// All that is to be sent now, in one piece.
void Http2Connection::send() {
  if (is_writing_ || !is_open_ || is_draining_) return;
  nghttp2_session* const session = session_.get();
  if (is_ending_ && !std::exchange(has_told_end_, true)) {
    const StreamId last = nghttp2_session_get_last_proc_stream_id(session);
    nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0);
  }
  out_.clear();
  while (out_.size() < kWriteBytes) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session, &data);
    if (size < 0) return close();
    if (size == 0) break;
    out_.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
  }
  if (out_.empty()) {
    if (nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0) drain();
    return;
  }
  is_writing_ = true;
  writing_since_ = now();
  asio::async_write(secure_.stream, asio::buffer(out_), [connection = kept()](error_code error, std::size_t) {
    connection->is_writing_ = false;
    if (error) return connection->close();
    connection->send();
  });
}

/// Takes the rest that the client sends: if the connection were closed at once, it might not see the last answer.
void Http2Connection::drain() {
  is_draining_ = true;
  error_code ignored;
  secure_.stream.next_layer().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  set_due(kDrainTime);
}

void Http2Connection::hand_over() {
  for (const StreamId id : std::exchange(ready_, {})) {
    if (Stream* const stream = find(id); stream != nullptr) hand_over(id, *stream);
  }
}

void Http2Connection::hand_over(StreamId id, Stream& stream) {
  if (stream.is_handed_over) return;
  if (stream.refusal) return answer(id, *std::move(stream.refusal));
  stream.is_handed_over = true;
  if (stream.method == "GET" && server_.handlers.answer && server_.handlers.is_stream(stream.request)) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_HTTP_1_1_REQUIRED);
    return;
  }
  if (!server_.dispatch(stream.method, std::move(stream.request), responder(id)))
    answer(id, refusal_of(HttpStatus::method_not_allowed));
}

/// May be called on any thread, also when the connection or the stream is over.
HttpServer::Handlers::Respond Http2Connection::responder(StreamId id) {
  return [connection = kept(), id](HttpResponse response) {
    asio::post(connection->server_.context, [connection, id, response = std::move(response)]() mutable {
      if (!connection->is_open_) return;
      connection->answer(id, std::move(response));
      connection->send();
    });
  };
}

void Http2Connection::answer(StreamId id, HttpResponse response) {
  Stream* const stream = find(id);
  if (stream == nullptr || std::exchange(stream->is_answered, true)) return;
  std::vector<std::pair<std::string, std::string>> headers{{":status", std::to_string(response.status)},
                                                           {"content-type", std::move(response.content_type)},
                                                           {"content-length", std::to_string(response.body.size())}};
  for (auto& [name, value] : server_.headers()) headers.emplace_back(lower(name), value);
  std::vector<nghttp2_nv> fields;
  for (auto& [name, value] : headers) {
    fields.push_back({reinterpret_cast<std::uint8_t*>(name.data()), reinterpret_cast<std::uint8_t*>(value.data()),
                      name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  if (stream->method != "HEAD") stream->body = std::move(response.body);
  // A client that is answered before it has sent everything may go on for a while: cut off, it might not see the
  // answer.
  stream->due = now() + (stream->is_handed_over ? server_.options.request_timeout : kDrainTime);
  nghttp2_data_provider body{};
  body.read_callback = [](nghttp2_session*, StreamId stream_id, std::uint8_t* to, std::size_t size,
                          std::uint32_t* flags, nghttp2_data_source*, void* user) {
    return static_cast<ssize_t>(self(user).read_body(stream_id, to, size, flags));
  };
  nghttp2_submit_response(session_.get(), id, fields.data(), fields.size(), stream->body.empty() ? nullptr : &body);
  forget_body(*stream);
  is_ending_ = is_ending_ || server_.has_changed(secure_.context);
}

std::size_t Http2Connection::read_body(StreamId id, std::uint8_t* to, std::size_t size, std::uint32_t* flags) {
  Stream* const stream = find(id);
  const std::size_t left = stream == nullptr ? 0 : stream->body.size() - stream->sent_bytes;
  const std::size_t taken = std::min(left, size);
  if (taken > 0) std::memcpy(to, stream->body.data() + stream->sent_bytes, taken);
  if (stream != nullptr) stream->sent_bytes += taken;
  if (taken == left) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return taken;
}

void Http2Connection::look_later() {
  using std::chrono::milliseconds;
  const milliseconds shortest = std::min<milliseconds>(server_.options.request_timeout, server_.options.idle_timeout);
  set_due(std::max(shortest / 4, kShortestLook));
}

void Http2Connection::on_due() {
  if (is_draining_) return close();
  look();
}

/// Lets go of what takes too long: a request, an answer that is not read, a connection that nothing is asked on.
void Http2Connection::look() {
  const Time time = now();
  if (is_writing_ && time - writing_since_ > server_.options.request_timeout) return close();
  if (streams_.empty() && time - last_heard_ > server_.options.idle_timeout)
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
  for (const auto& [id, stream] : streams_) {
    const bool is_worked_on = stream.is_handed_over && !stream.is_answered;
    if (is_worked_on || time <= stream.due) continue;
    const bool is_complete = stream.is_answered && stream.sent_bytes == stream.body.size();
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, is_complete ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
  }
  send();
  if (is_open_ && !is_draining_) look_later();
}

}  // namespace

std::shared_ptr<Connection> make_http2_connection(ServerCore& server, std::uint64_t number, SecureStream secure) {
  return std::make_shared<Http2Connection>(server, number, std::move(secure));
}

}  // namespace topolet::http
