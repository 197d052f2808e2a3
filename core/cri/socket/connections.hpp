// The connections that are open, and which one goes when there are too many.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/unique_fd.hpp"

namespace topolet::cri {

/// Holds a duplicate of each connection's descriptor, and goes by the duplicates' numbers. For one thread.
class Connections {
 public:
  std::size_t size() const { return open_.size(); }

  /// `process` is the one at the other end, as the kernel names it.
  void add(UniqueFd duplicate, pid_t process);
  void remove(int fd) { open_.erase(fd); }
  void disconnect_all_connections();
  /// Of the duplicates.
  std::vector<UniqueFd> duplicates() const;

  /// Looks once at what waits in the sockets, unread by us or by the other side. True after every kSamples of those.
  bool sample_backlogs();
  /// The connections that had a backlog in nearly all of the last kSamples: they send without end, or do not read what
  /// they get. Begins to count anew.
  std::vector<int> take_backlogged();
  pid_t process_of(int fd) const;
  static constexpr int kSamples = 10;
  /// Less is what any client may leave for a moment, and an idle one for ever.
  static constexpr int kBacklogBytes = 16 << 10;

  struct ProcessConnections {
    pid_t process = 0;
    std::size_t connections = 0;
    int newest_fd = -1;
  };
  /// Who holds the most; of several, any.
  ProcessConnections process_with_most() const;
  std::size_t count_of(pid_t process) const;

  /// The connection to end so that `newcomer` can have one: the newest of the process that holds the most. Nothing if
  /// the newcomer would then hold the most itself. So one process cannot shut out the others.
  std::optional<int> connection_to_evict(pid_t newcomer) const;

 private:
  struct Connection {
    UniqueFd duplicate;
    pid_t process = 0;
    std::uint64_t order = 0;
    int backlogs = 0;  ///< samples that found one
  };
  std::unordered_map<int, Connection> open_;
  std::uint64_t last_order_ = 0;
  int samples_ = 0;
};

/// The process that connected to this unix socket; 0 if the kernel does not say.
pid_t peer_process(int connection_fd);

}  // namespace topolet::cri
