#include "core/fronts/nri/session.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

#include "core/base/log.hpp"
#include "core/fronts/nri/nri.pb.h"

namespace topolet::nri {
namespace {

/// A runtime that was restarted creates containers at once. One that has not come back after a minute may have no NRI.
constexpr std::chrono::milliseconds kBetweenAttempts{100};
constexpr std::chrono::milliseconds kBetweenLaterAttempts{1000};
constexpr int kQuickAttempts = 600;
/// Whether all that was taken up is answered.
constexpr std::chrono::milliseconds kBetweenChecks{2};
/// What the runtimes give a plugin by default, too.
constexpr std::chrono::seconds kRegistrationTimeout{5};
/// Of the messages that topolet knows. The runtime sends newer ones by its own version, not by this.
constexpr const char* kNriVersion = "v0.12.0";
/// Of containerd and CRI-O, unless they are configured otherwise.
constexpr std::chrono::milliseconds kUsualRequestTimeout{2000};
/// A runtime may be configured to wait for longer; nobody who makes a container does.
constexpr std::chrono::milliseconds kLongestRequestTimeout{60'000};

/// Runtimes refuse a plugin that wants events which they do not know. Without one that they do know, the mask would
/// mean all.
std::int32_t mask_of(const std::vector<Event>& events, const RuntimeFacts& runtime) {
  std::int32_t mask = 0;
  for (const Event event : events) {
    if (event == Event::kValidateContainerAdjustment && events.size() > 1 && !asks_validators(runtime)) continue;
    mask |= 1 << (static_cast<int>(event) - 1);
  }
  return mask;
}

}  // namespace

Session::Session(Options options, Callbacks callbacks, Log& log, std::optional<ReleasedSession> released)
    : options_(std::move(options)), callbacks_(std::move(callbacks)), log_(log) {
  if (released && released->plugin == full_name()) {
    boost::asio::post(
        *io_, [this, shared = std::make_shared<ReleasedSession>(*std::move(released))] { resume(std::move(*shared)); });
  } else {
    boost::asio::post(*io_, [this] { connect(); });
  }
  thread_ = std::thread([this] { io_->run(); });
  pthread_setname_np(thread_.native_handle(), "topolet-nri");
}

Session::~Session() {
  boost::asio::post(*io_, [this] {
    is_ending_ = true;
    if (connection_) connection_->close();
    retry_.cancel();
    for (boost::asio::steady_timer& timer : timers_) timer.cancel();
    work_.reset();
  });
  thread_.join();
}

void Session::after(std::chrono::milliseconds delay, std::function<void()> then) {
  timers_.emplace_back(*io_, delay);
  const auto timer = std::prev(timers_.end());
  timer->async_wait([this, timer, then = std::move(then)](boost::system::error_code error) {
    timers_.erase(timer);
    if (!error) then();
  });
}

std::chrono::milliseconds Session::request_timeout() const {
  const MutexLock lock(mutex_);
  const bool is_told = state_.runtime && state_.runtime->request_timeout.count() > 0;
  return is_told ? std::min(state_.runtime->request_timeout, kLongestRequestTimeout) : kUsualRequestTimeout;
}

SessionState Session::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

void Session::connect() {
  if (is_ending_) return;
  Connection::Socket socket(*io_);
  boost::system::error_code error;
  socket.connect(options_.socket.string(), error);
  if (error) {
    const bool is_there = error != boost::system::errc::no_such_file_or_directory;
    return connect_later({is_there ? Code::kUnavailable : Code::kNotFound,
                          fmt::format("'{}' cannot be connected to: {}", options_.socket.string(), error.message())});
  }
  connection_ = std::make_shared<Connection>(io_, std::move(socket), connection_callbacks());
  connection_->start();
  register_plugin();
}

Connection::Callbacks Session::connection_callbacks() {
  return {[this](const std::string& method, const std::string& payload, const Answer& answer) {
            on_runtime_call(method, payload, answer);
          },
          [this](const Error& why) { connect_later(why); }};
}

/// Takes over a socket that is connected to the runtime; false if it is none.
bool Session::take(UniqueFd descriptor, Connection::Socket& socket) {
  boost::system::error_code error;
  socket.assign(boost::asio::local::stream_protocol(), descriptor.get(), error);
  if (error) return false;
  (void)descriptor.release();
  return true;
}

void Session::resume(ReleasedSession released) {
  if (is_ending_) return;
  Connection::Socket socket(*io_);
  if (!take(std::move(released.connection.socket), socket)) return connect();
  log_.info("NRI: goes on as '{}' with {} {}", full_name(), released.runtime.name, released.runtime.version);
  if (callbacks_.on_registered) callbacks_.on_registered(released.runtime);
  {
    const MutexLock lock(mutex_);
    state_ = {std::move(released.runtime), {}};
  }
  connection_ = std::make_shared<Connection>(io_, std::move(socket), connection_callbacks());
  connection_->start(released.connection.unread, released.connection.next_call);
}

void Session::adopt(UniqueFd descriptor) {
  boost::asio::post(*io_, [this, shared = std::make_shared<UniqueFd>(std::move(descriptor))] {
    if (is_ending_) return;
    Connection::Socket socket(*io_);
    if (!take(std::move(*shared), socket)) return log_.warn("NRI: what the pre-installed plugin has sent is no socket");
    // Two plugins that set a cpuset fail every create.
    if (connection_) connection_->close();
    retry_.cancel();
    if (callbacks_.on_lost) callbacks_.on_lost();
    connection_ = std::make_shared<Connection>(io_, std::move(socket), connection_callbacks());
    connection_->start();
    register_plugin();
  });
}

std::optional<ReleasedSession> Session::release(std::chrono::milliseconds patience) {
  std::promise<std::optional<ReleasedSession>> promise;
  boost::asio::post(*io_, [this, &promise, until = std::chrono::steady_clock::now() + patience] {
    retry_.cancel();
    is_ending_ = true;
    if (connection_) connection_->stop_reading();
    release_when_idle(until, promise);
  });
  return promise.get_future().get();
}

void Session::release_when_idle(std::chrono::steady_clock::time_point until,
                                std::promise<std::optional<ReleasedSession>>& promise) {
  const bool is_late = std::chrono::steady_clock::now() >= until;
  if (connection_ && !connection_->is_idle() && !is_late) {
    return after(kBetweenChecks, [this, until, &promise] { release_when_idle(until, promise); });
  }
  const std::optional<RuntimeFacts> runtime = state().runtime;
  std::optional<ReleasedConnection> released;
  if (connection_ && runtime) released = connection_->release();
  if (!released) return promise.set_value(std::nullopt);
  promise.set_value(ReleasedSession{*std::move(released), *runtime, full_name()});
}

/// Says why once, until it is something else.
void Session::connect_later(const Error& why) {
  if (is_ending_) return;
  if (connection_) connection_->close();
  connection_.reset();
  if (callbacks_.on_lost) callbacks_.on_lost();
  bool is_news = false;
  {
    const MutexLock lock(mutex_);
    is_news = state_.why_not != why.message;
    state_ = {std::nullopt, why.message};
  }
  // A runtime without NRI is none that something is wrong with.
  if (is_news)
    log_.log(why.code == Code::kNotFound ? spdlog::level::debug : spdlog::level::warn, "NRI: {}; topoletd tries again",
             why.message);
  retry_.expires_after(++failures_ > kQuickAttempts ? kBetweenLaterAttempts : kBetweenAttempts);
  retry_.async_wait([this](boost::system::error_code error) {
    if (!error) connect();
  });
}

void Session::register_plugin() {
  lens::RegisterRequest request;
  request.set_plugin_name(options_.name);
  request.set_plugin_index(options_.index);
  request.set_nri_version(kNriVersion);
  const std::weak_ptr<Connection> of = connection_;
  connection_->call(
      "RegisterPlugin", request.SerializeAsString(), kRegistrationTimeout,
      [this, of](const Result<std::string>& answer) {
        // A connection that is lost has said so.
        if (answer || of.expired() || of.lock() != connection_) return;
        connect_later({answer.error().code, fmt::format("the runtime does not register plugin '{}-{}': {}",
                                                        options_.index, options_.name, answer.error().message)});
      });
}

void Session::on_runtime_call(const std::string& method, const std::string& payload, const Answer& answer) {
  if (method == "Configure") return answer(configure(payload));
  // The connection ends by itself.
  if (method == "Shutdown") return answer(std::string());
  callbacks_.on_call(method, payload, answer);
}

std::string Session::configure(const std::string& payload) {
  lens::ConfigureRequest request;
  // What cannot be read is not known.
  (void)request.ParseFromString(payload);
  RuntimeFacts runtime{request.runtime_name(), request.runtime_version(), request.nri_version(),
                       std::chrono::milliseconds(request.request_timeout_ms())};
  failures_ = 0;
  if (callbacks_.on_registered) callbacks_.on_registered(runtime);
  log_.info("NRI: registered as '{}-{}' with {} {}, NRI {}", options_.index, options_.name, runtime.name,
            runtime.version, runtime.nri_version.empty() ? "of unknown version" : runtime.nri_version);
  lens::ConfigureResponse response;
  response.set_events(mask_of(options_.events, runtime));
  {
    const MutexLock lock(mutex_);
    state_ = {std::move(runtime), {}};
  }
  return response.SerializeAsString();
}

}  // namespace topolet::nri
