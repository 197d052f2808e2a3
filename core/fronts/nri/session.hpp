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
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/fronts/nri/connection.hpp"

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

/// What a runtime says of itself.
struct RuntimeFacts {
  std::string name;                             ///< "containerd", "cri-o"
  std::string version;                          ///< such as "v2.4.2"
  std::string nri_version;                      ///< such as "v0.12.3"; empty: it does not say
  std::chrono::milliseconds request_timeout{};  ///< after so long it closes the connection; 0: it does not say

  friend bool operator==(const RuntimeFacts&, const RuntimeFacts&) = default;
};

/// Returns false if the runtime asks no plugin to validate what others adjust: NRI before 0.10. Where it does not say
/// which NRI it has, its own version tells: containerd from 2.2, CRI-O from 1.34. True if neither is known.
bool asks_validators(const RuntimeFacts& runtime);

/// How things are with the runtime.
struct SessionState {
  std::optional<RuntimeFacts> runtime;  ///< while topolet is registered
  std::string why_not;                  ///< otherwise; empty before the first attempt has ended
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

  /// Begins to connect. `on_call`: as Connection::Callbacks::on_call, for all but Configure and Shutdown.
  Session(Options options, OnCall on_call, Log& log);
  /// Ends the connection, and does not call back any more.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Calls back after `delay`, unless the session has ended by then. From on_call only.
  void after(std::chrono::milliseconds delay, std::function<void()> then);
  /// Any thread.
  SessionState state() const TOPOLET_EXCLUDES(mutex_);

 private:
  void connect();
  void connect_later(const Error& why);
  void register_plugin();
  void on_runtime_call(const std::string& method, const std::string& payload, const Answer& answer);
  std::string configure(const std::string& payload);

  const Options options_;
  const OnCall on_call_;
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
