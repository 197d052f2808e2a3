// The socket that clients connect to. gRPC's own listener would bind over live sockets, unlink files that it does not
// own, and die of a single EMFILE.
//
// The room core/cri/socket, namespace topolet::cri: accepts connections, and limits how many there are and what they
// may use (memory_guard.hpp). Start at Listener. It may include core/base and core/cri/wire; not core/cri/messages.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/cri/socket/connections.hpp"
#include "core/cri/socket/memory_guard.hpp"

namespace topolet::cri {

struct ListenerOptions {
  std::string path = {};  ///< of the unix socket
  mode_t mode = 0660;
  std::optional<gid_t> group = {};  ///< of the socket's file; none: the process's
  /// A socket whose mode and owner are copied if it exists: the runtime's, so that the same clients may connect.
  std::string copy_access_from = {};
  /// A socket that somebody else (systemd, another topoletd) bound and listens on, taken over; −1: bind `path`.
  int inherited_fd = -1;
  /// The other topoletd's descriptor with the lock on the path, so that the file is ours to unlink; −1: it is not.
  int inherited_lock_fd = -1;
  /// Beyond it, the process with the most connections loses its newest one, which may be the one that just came.
  std::size_t max_connections = 1024;
  /// With more memory than this in use, connections that send without end or do not read are ended; 0: never.
  std::size_t max_memory_bytes = 512 << 20;
  /// One for all listeners of the process, so that none ends connections for what came in on another; null: one alone.
  std::shared_ptr<MemoryClaims> memory_claims = nullptr;
};

/// Owns the socket and the thread that accepts on it. Not for use by several threads, but where it says so.
class Listener {
 public:
  /// Binds and listens; clients wait in the backlog until start(). FAILED_PRECONDITION if another topoletd, or any
  /// live process, serves `path`; a file left over by a dead one is replaced. The directory must exist.
  static Result<std::unique_ptr<Listener>> open(const ListenerOptions& options, Log& log);

  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Gets each connected, non-blocking socket; returns what there will be to know of its calls, or nothing.
  using OnConnection = std::function<std::shared_ptr<ClientCalls>(UniqueFd)>;
  /// `on_memory_short` is told when memory becomes short and when it no longer is, see MemoryGuard. Both on the
  /// listener's thread. Once.
  void start(OnConnection on_connection, MemoryGuard::OnMemoryShort on_memory_short = {});
  /// Accepts no more: who connects waits for the next to accept on the socket. Returns duplicates of the connections
  /// that are open. Once, between start() and stop().
  std::vector<UniqueFd> stop_accepting();
  /// Runs `work` on the thread that accepts, so that whoever posts it sees that the thread goes on. Dropped after
  /// stop(). Any thread.
  void post(std::function<void()> work);
  /// Any thread.
  std::size_t open_connections() const { return open_connections_; }

  /// The sockets that another process needs to go on in this one's place: see the options of the same names.
  struct Sockets {
    UniqueFd socket;
    UniqueFd lock;  ///< none where the file is not ours
  };
  Sockets duplicate_sockets() const;
  /// False where somebody else, such as systemd, goes on listening when this process has ended.
  bool owns_file() const { return inode_ != 0; }
  /// The socket's file is another process's from here on.
  void disown_file() { inode_ = 0; }

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
  void run_posted();
  void accept_all();
  std::vector<UniqueFd> end_accepting();
  void read_inode();
  void accept_connection(UniqueFd connection);
  bool evict_for(pid_t process);
  void disconnect(int duplicate_fd);
  void untrack(int duplicate_fd);
  void pause(int error);
  void resume();
  int wait_ms() const;

  const ListenerOptions options_;
  Log& log_;
  UniqueFd lock_;
  UniqueFd socket_;
  UniqueFd stop_event_;
  UniqueFd post_event_;
  UniqueFd poll_;
  dev_t device_ = 0;
  ino_t inode_ = 0;  ///< 0: the file is not ours
  OnConnection on_connection_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;
  Mutex posting_;
  std::vector<std::function<void()>> posted_ TOPOLET_GUARDED_BY(posting_);

  // The accepting thread's.
  Connections connections_;
  std::atomic<std::size_t> open_connections_ = 0;  ///< for the others
  std::promise<std::vector<UniqueFd>> accepting_ended_;
  bool is_accepting_ = true;
  bool paused_ = false;
  bool limit_warned_ = false;  ///< and has said so
  std::optional<MemoryGuard> guard_;
  bool accept_failure_logged_ = false;  ///< of a failing accept
};

}  // namespace topolet::cri
