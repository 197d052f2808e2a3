// The socket that clients connect to. gRPC's own listener would bind over live sockets, unlink files that it does not
// own, and die of a single EMFILE.
//
// The room core/cri/socket, namespace topolet::cri: accepts connections, and limits how many there are. Start at
// Listener. It may include core/base and core/cri/wire; not core/cri/messages.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/base/log.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/cri/socket/connections.hpp"
#include "core/cri/wire/heap_trimmer.hpp"

namespace topolet::cri {

struct ListenerOptions {
  std::string path = {};  ///< of the unix socket
  mode_t mode = 0660;
  /// A socket whose mode and owner are copied if it exists: the runtime's, so that the same clients may connect.
  std::string copy_access_from = {};
  /// A socket that somebody else (systemd) bound and listens on, taken over; −1: bind `path`. It is not unlinked.
  int inherited_fd = -1;
  /// Beyond it, the process with the most connections loses its newest one, which may be the one that just came.
  std::size_t max_connections = 1024;
  /// With more memory than this in use, connections that send without end or do not read are ended.
  std::size_t max_memory_bytes = 512 << 20;
};

/// Owns the socket and the thread that accepts on it. Not for use by several threads.
class Listener {
 public:
  /// Binds and listens; clients wait in the backlog until start(). FAILED_PRECONDITION if another topoletd, or any
  /// live process, serves `path`; a file left over by a dead one is replaced. The directory must exist.
  static Result<std::unique_ptr<Listener>> open(const ListenerOptions& options, Log& log);

  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// `on_connection` gets each connected, non-blocking socket; `on_memory_full` runs a few times a second while there
  /// is more memory in use than allowed. Both on the listener's thread. Once.
  void start(std::function<void(UniqueFd)> on_connection, std::function<void()> on_memory_full = {});
  /// Ends the thread and closes the socket; unlinks it if it is still ours. Connections handed out live on.
  void stop();
  /// Ends every connection that is left: their clients see UNAVAILABLE, not the CANCELLED of a gRPC server that stops.
  void disconnect_all();

 private:
  Listener(const ListenerOptions& options, Log& log) : options_(options), log_(log) {}

  Status bind_socket();
  Status inherit_socket();
  Status prepare_poll();
  void unlink_own() const;

  bool poll_for(int fd, std::uint32_t events) const;
  void run();
  void accept_all();
  void accept_connection(UniqueFd connection);
  bool evict_for(pid_t process);
  void untrack(int duplicate_fd);
  void pause(int error);
  void resume();
  int wait_ms() const;
  void check_memory();
  void disconnect_backlogged();

  const ListenerOptions options_;
  Log& log_;
  UniqueFd lock_;
  UniqueFd socket_;
  UniqueFd stop_event_;
  UniqueFd poll_;
  dev_t device_ = 0;
  ino_t inode_ = 0;  ///< 0: the file is not ours
  std::function<void(UniqueFd)> on_connection_;
  std::function<void()> on_memory_full_;
  std::thread thread_;

  // The accepting thread's.
  Connections connections_;
  bool paused_ = false;
  bool limit_warned_ = false;  ///< and has said so
  HeapTrimmer heap_trimmer_;
  bool over_memory_ = false;
  std::chrono::steady_clock::time_point next_memory_check_{};
  bool accept_failure_logged_ = false;  ///< of a failing accept
};

}  // namespace topolet::cri
