// The parts of the apiserver of the tests: what its connections share, and one connection.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <deque>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/base/mutex.hpp"
#include "tests/cluster_api/apiserver.hpp"
#include "tests/cluster_api/http_text.hpp"

namespace topolet::testing {

/// How soon a thread that waits for something else notices that its client went away, or that its time is over.
constexpr std::chrono::milliseconds kLookAtClient{20};

inline bool begins_with(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

struct ApiServer::Impl {
  explicit Impl(Options server_options)
      : options(std::move(server_options)), store(options.clock), tokens(options.tokens) {
    for (const Collection& collection : options.collections) store.add(collection);
    reserved.open(boost::asio::ip::tcp::v4());
    reserved.set_option(boost::asio::ip::tcp::acceptor::reuse_address(true));
    reserved.bind({boost::asio::ip::address_v4::loopback(), 0});
    endpoint = reserved.local_endpoint();
  }

  void listen(const Certificate& certificate);
  void stop_listening();
  void accept_connections();
  void close_connections();
  std::vector<std::unique_ptr<Connection>> take_connections(bool only_ended) TOPOLET_REQUIRES(mutex);

  void note_change() TOPOLET_REQUIRES(mutex) {
    ++changes;
    changed.notify_all();
  }
  ObjectStore::Location locate(const std::string& path) TOPOLET_REQUIRES(mutex) {
    const auto location = store.locate(path);
    if (!location) throw std::invalid_argument(path + " is no collection of the server");
    return *location;
  }
  ObjectStore::Location locate(const std::string& path, const std::string& name, const std::string& name_space)
      TOPOLET_REQUIRES(mutex) {
    ObjectStore::Location location = locate(path);
    location.name = name;
    if (!name_space.empty()) location.name_space = name_space;
    return location;
  }

  const Options options;
  const Ca ca;
  boost::asio::io_context context;
  /// Bound and never listening: while nothing listens, nobody else gets the port.
  boost::asio::ip::tcp::acceptor reserved{context};
  boost::asio::ip::tcp::endpoint endpoint;
  boost::asio::ip::tcp::acceptor acceptor{context};
  std::thread accepting;
  Certificate certificate = ca.server_certificate();

  struct SentText {
    std::string path_prefix;
    std::string text;
  };

  mutable Mutex mutex;
  mutable CondVar changed;
  std::shared_ptr<boost::asio::ssl::context> tls TOPOLET_GUARDED_BY(mutex);
  bool is_listening TOPOLET_GUARDED_BY(mutex) = false;
  std::uint64_t changes TOPOLET_GUARDED_BY(mutex) = 0;
  ObjectStore store TOPOLET_GUARDED_BY(mutex);
  std::set<std::string> tokens TOPOLET_GUARDED_BY(mutex);
  std::vector<Request> requests TOPOLET_GUARDED_BY(mutex);
  std::deque<Misbehaviour> misbehaviours TOPOLET_GUARDED_BY(mutex);
  std::vector<SentText> sent_texts TOPOLET_GUARDED_BY(mutex);
  bool ignores_new_connections TOPOLET_GUARDED_BY(mutex) = false;
  std::uint64_t releases TOPOLET_GUARDED_BY(mutex) = 0;
  std::uint64_t bookmarks TOPOLET_GUARDED_BY(mutex) = 0;
  std::uint64_t ends_of_watches TOPOLET_GUARDED_BY(mutex) = 0;
  std::uint64_t made_connections TOPOLET_GUARDED_BY(mutex) = 0;
  std::vector<std::unique_ptr<Connection>> connections TOPOLET_GUARDED_BY(mutex);
  std::map<std::uint64_t, std::string> watched_paths TOPOLET_GUARDED_BY(mutex);  ///< by connection
};

/// One connection, served by a thread of its own with calls that block. Whoever wants it to end shuts the socket down,
/// which ends those calls; the descriptor stays open until the thread has ended.
class ApiServer::Connection {
 public:
  Connection(Impl& server, std::uint64_t number, boost::asio::ip::tcp::socket socket,
             std::shared_ptr<boost::asio::ssl::context> tls)
      : server_(server), number_(number), tls_(std::move(tls)), stream_(std::move(socket), *tls_) {}
  ~Connection() {
    if (thread_.joinable()) thread_.join();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void begin() {
    thread_ = std::thread([this] { run(); });
  }
  void shut_down() {
    is_shut_down_ = true;
    ::shutdown(stream_.next_layer().native_handle(), SHUT_RDWR);
  }
  bool has_ended() const { return has_ended_; }

 private:
  /// The parts of a request that are needed to answer it.
  struct Call {
    std::size_t log_index = 0;  ///< in Impl::requests
    std::string method;
    HttpTarget target;
    std::string body;
    std::string content_type;
    bool is_authorized = false;
    bool keeps_alive = true;
    std::uint64_t releases = 0;  ///< when it came
    std::optional<Action> action{};

    bool is_watch() const { return method == "WATCH"; }
    template <typename T>
    const T* action_if() const {
      return action ? std::get_if<T>(&*action) : nullptr;
    }
  };
  /// Where a watch is in all that it sends.
  struct WatchState {
    ObjectStore::Location location;
    FieldSelector selector;
    std::size_t next_version = 0;
    std::size_t next_text = 0;
    std::uint64_t bookmarks = 0;
    std::uint64_t ends = 0;
    bool wants_bookmarks = false;
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::size_t sent_events = 0;
  };

  void run();
  void serve();
  std::optional<Call> read_call();
  Call log_call(const boost::beast::http::request<boost::beast::http::string_body>& message);
  std::optional<Action> take_action(const Request& request) TOPOLET_REQUIRES(server_.mutex);
  bool has_client_certificate();

  // Each returns whether the connection goes on.
  bool answer(const Call& call);
  bool answer_plainly(const Call& call);
  bool misbehave(const Call& call, const Action& action);
  bool send_answer(const Call& call, unsigned code, const std::string& body,
                   std::map<std::string, std::string> headers);
  bool write(const std::string& text);
  bool watch(const Call& call);
  bool send_event(const Call& call, WatchState& state, const std::string& line);
  bool wait_silently(const Call& call, const std::optional<std::chrono::milliseconds>& time);

  Answer do_call(const Call& call);
  Answer bind_in_store(const Call& call, const ObjectStore::Location& location) TOPOLET_REQUIRES(server_.mutex);
  Answer do_in_store(const Call& call, const ObjectStore::Location& location) TOPOLET_REQUIRES(server_.mutex);
  std::variant<Answer, WatchState> begin_watch(const Call& call, std::vector<std::string>& lines)
      TOPOLET_REQUIRES(server_.mutex);
  /// True when it ends.
  bool take_lines(const Call& call, WatchState& state, std::vector<std::string>& lines) TOPOLET_REQUIRES(server_.mutex);
  Json bookmark(const WatchState& state) const TOPOLET_REQUIRES(server_.mutex);

  void note_answered(const Call& call, unsigned code) {
    MutexLock lock(server_.mutex);
    server_.requests[call.log_index].answered = code;
    server_.note_change();
  }
  /// Until something changes, kLookAtClient at most. False if the connection is over.
  bool wait(std::chrono::steady_clock::time_point deadline) TOPOLET_REQUIRES(server_.mutex) {
    const auto longest = std::min<std::chrono::steady_clock::duration>(kLookAtClient, deadline - now());
    server_.changed.wait_until(server_.mutex, std::chrono::steady_clock::now() + longest);
    return is_connected();
  }
  std::chrono::steady_clock::time_point now() const { return server_.options.clock.steady(); }
  /// While a request is being answered its client has nothing to say: what comes is the end of TLS.
  bool is_connected() {
    char byte = 0;
    const auto size = ::recv(stream_.next_layer().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return !is_shut_down_ && size < 0 && (errno == EAGAIN || errno == EINTR);
  }

  Impl& server_;
  const std::uint64_t number_;
  const std::shared_ptr<boost::asio::ssl::context> tls_;
  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream_;
  boost::beast::flat_buffer buffer_;
  std::atomic<bool> is_shut_down_{false};
  std::atomic<bool> has_ended_{false};
  std::thread thread_;
};

}  // namespace topolet::testing
