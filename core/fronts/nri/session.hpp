// topolet as a plugin of a runtime: connects to the runtime's NRI socket, registers, and comes again when the runtime
// was restarted.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/fronts/nri/connection.hpp"
#include "core/fronts/nri/runtime_facts.hpp"

namespace topolet::nri {

/// The events that a runtime tells, by NRI's numbers.
enum class Event : std::uint8_t {
  kRunPodSandbox = 1,
  kStopPodSandbox,
  kRemovePodSandbox,
  kCreateContainer,
  kPostCreateContainer,
  kStartContainer,
  kPostStartContainer,
  kUpdateContainer,
  kPostUpdateContainer,
  kStopContainer,
  kRemoveContainer,
  kUpdatePodSandbox,
  kPostUpdatePodSandbox,
  kValidateContainerAdjustment,
};

/// How things are with the runtime.
struct SessionState {
  std::optional<RuntimeFacts> runtime;  ///< while topolet is registered
  std::string why_not;                  ///< otherwise; empty before the first attempt has ended
};

/// A registered plugin that another process goes on as.
struct ReleasedSession {
  ReleasedConnection connection;
  RuntimeFacts runtime;
  std::string plugin;  ///< its name, with its index
};

/// Runs a thread of its own.
class Session {
 public:
  struct Options {
    std::filesystem::path socket;
    std::string name;           ///< letters, digits and "_.+-"
    std::string index;          ///< two digits; plugins are asked in this order
    std::vector<Event> events;  ///< those that it wants to hear
  };
  /// On the session's thread. Methods have NRI's names; the events that older runtimes tell by StateChange come as
  /// this.
  using OnCall = std::function<void(const std::string& method, const std::string& payload, Answer answer)>;
  struct Callbacks {
    /// As Connection::Callbacks::on_call, for all but Configure and Shutdown.
    OnCall on_call;
    /// The runtime has said what it is, and has asked nothing yet.
    std::function<void(const RuntimeFacts&)> on_registered = {};
    /// The runtime asks no more, and nothing that was answered just now need have reached it.
    std::function<void()> on_lost = {};
  };

  /// Begins to connect, or goes on with `released` if that is the same plugin. Events that the runtime does not know
  /// are left out.
  Session(Options options, Callbacks callbacks, Log& log, std::optional<ReleasedSession> released = {});
  /// Ends the connection, and does not call back any more.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Calls back after `delay`, unless the session has ended by then. From on_call only.
  void after(std::chrono::milliseconds delay, std::function<void()> then);
  /// Goes on with a connection that the runtime has made for a plugin which it has started itself, in the place of any
  /// other. Any thread.
  void adopt(UniqueFd descriptor);
  /// Ends the session, and leaves the connection to whoever goes on as the same plugin. What arrives from now on is not
  /// taken up; what was, has `patience` to be answered. None if it is not registered. Blocks; not from a callback.
  std::optional<ReleasedSession> release(std::chrono::milliseconds patience);

  /// Any thread.
  SessionState state() const TOPOLET_EXCLUDES(mutex_);
  /// How long the runtime waits for an answer before it closes the connection: as it says, up to a minute, or else what
  /// is usual.
  std::chrono::milliseconds request_timeout() const TOPOLET_EXCLUDES(mutex_);
  /// The name under which the runtime knows it.
  std::string full_name() const { return options_.index + "-" + options_.name; }

 private:
  void connect();
  void connect_later(const Error& why);
  void resume(ReleasedSession released);
  static bool take(UniqueFd descriptor, Connection::Socket& socket);
  void release_when_idle(std::chrono::steady_clock::time_point until,
                         std::promise<std::optional<ReleasedSession>>& promise);
  Connection::Callbacks connection_callbacks();
  void register_plugin();
  void on_runtime_call(const std::string& method, const std::string& payload, const Answer& answer);
  std::string configure(const std::string& payload);

  const Options options_;
  const Callbacks callbacks_;
  Log& log_;
  const std::shared_ptr<boost::asio::io_context> io_ = std::make_shared<boost::asio::io_context>();
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_{io_->get_executor()};
  boost::asio::steady_timer retry_{*io_};
  std::list<boost::asio::steady_timer> timers_;  ///< of after()
  std::shared_ptr<Connection> connection_;
  bool is_ending_ = false;
  int failures_ = 0;  ///< attempts in vain since it was registered last
  mutable Mutex mutex_;
  SessionState state_ TOPOLET_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace topolet::nri
