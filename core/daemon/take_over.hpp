// Lets one topoletd take another one's place: the messages between the two, on a unix socket of their own.
//
// The new one connects to daemon.control with ".take-over" behind it and says what it is configured to serve. The old
// one brings its calls to an end, closes its state, and answers with its listening sockets (SCM_RIGHTS). The new one
// starts with them, says that it serves, and is let go. Each message is one line of JSON, an object; any other message,
// such as another version's, is refused with a sentence, and the receiver goes on where it can.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/config/options.hpp"
#include "core/cri/socket/listener.hpp"
#include "core/fronts/nri/session.hpp"

namespace topolet::daemon {

/// The sockets that go from one process to the next.
struct HandedOver {
  cri::Listener::Sockets listen;
  cri::Listener::Sockets control;
  cri::Listener::Sockets watch;                  ///< none where one of the two has none, or another one
  std::vector<UniqueFd> runtime_locks = {};      ///< of cri::RuntimeLock; none of or for an earlier version
  std::optional<nri::ReleasedSession> nri = {};  ///< of daemon.front = nri, if it was connected
};

/// "/run/topolet/control.sock.take-over"
std::string take_over_path(const config::DaemonOptions& options);

/// The topoletd whose place this process takes.
class Predecessor {
 public:
  /// Asks whoever serves the same sockets to hand them over, and waits until it has. None if there is nobody, or it has
  /// ended meanwhile. FAILED_PRECONDITION if it refuses; UNAVAILABLE if it does not answer.
  static Result<std::optional<Predecessor>> ask(const config::DaemonOptions& options);

  /// Once.
  HandedOver take_sockets() { return std::move(sockets_); }
  pid_t process() const { return process_; }
  /// This process serves: the other one ends as soon as its calls have. Waits until it has told the service manager.
  void report_serving();

 private:
  Predecessor(UniqueFd connection, HandedOver sockets, pid_t process)
      : connection_(std::move(connection)), sockets_(std::move(sockets)), process_(process) {}

  UniqueFd connection_;
  HandedOver sockets_;
  pid_t process_;
};

/// A process that asks for this one's place, or brings a connection of the runtime.
class Successor {
 public:
  Successor(UniqueFd connection, pid_t process) : connection_(std::move(connection)), process_(process) {}

  pid_t process() const { return process_; }
  /// Reads what it asks for. FAILED_PRECONDITION if it is not to serve what `options` say, or is of another version;
  /// UNAVAILABLE if it does not say that.
  Status read_request(const config::DaemonOptions& options);
  /// After read_request(): the connection that the runtime has made for the plugin which it starts itself, if this is
  /// who brings it. It asks for nothing else.
  UniqueFd take_nri_plugin() { return std::move(nri_plugin_); }
  void refuse(const std::string& why);
  /// After read_request(): whether it is to serve the same watch socket.
  bool wants_watch() const { return wants_watch_; }
  /// Earlier versions take no more descriptors than they know of.
  bool wants_runtime_locks() const { return wants_runtime_locks_; }
  bool wants_nri() const { return wants_nri_; }
  /// False if it has gone.
  bool hand_over(const HandedOver& sockets);
  /// False if it ends before, or takes too long.
  bool wait_until_serving(std::chrono::milliseconds patience);
  void let_go();

 private:
  UniqueFd connection_;
  pid_t process_;
  bool wants_watch_ = false;
  bool wants_runtime_locks_ = false;
  bool wants_nri_ = false;
  UniqueFd nri_plugin_;
};

/// Where successors ask.
class TakeOverSocket {
 public:
  /// Binds `path` with mode 0600.
  static Result<std::unique_ptr<TakeOverSocket>> open(const std::string& path);
  /// Unlinks it.
  ~TakeOverSocket();
  TakeOverSocket(const TakeOverSocket&) = delete;
  TakeOverSocket& operator=(const TakeOverSocket&) = delete;

  /// Readable when a successor waits.
  int fd() const { return socket_.get(); }
  /// None if nobody waits, or who does runs as another user.
  std::optional<Successor> accept();

 private:
  TakeOverSocket(std::string path, UniqueFd socket) : path_(std::move(path)), socket_(std::move(socket)) {}

  const std::string path_;
  const UniqueFd socket_;
};

}  // namespace topolet::daemon
