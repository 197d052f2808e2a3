// The connections that are open, and which one goes when there are too many.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "core/cri/socket/client_reads.hpp"

namespace topolet::cri {

/// Holds a duplicate of each connection's descriptor, and goes by the duplicates' numbers. For one thread.
class Connections {
 public:
  std::size_t size() const { return open_.size(); }

  /// `process` is the one at the other end, as the kernel names it.
  void add(UniqueFd duplicate, pid_t process, const client_reads::Followed& followed = {});
  void remove(int fd);
  void disconnect_all_connections();
  /// Of the duplicates.
  std::vector<UniqueFd> duplicates() const;
  pid_t process_of(int fd) const;

  std::optional<client_reads::Reads> reads_of(int fd) const;
  struct Waiting {
    bool any = false;
    std::optional<int> next = std::nullopt;
  };
  /// Of the connections that wait for their turn, read what they are sent, and have had so many complete requests: the
  /// one of which least was read lately and is unfinished, compared with the number of those requests.
  Waiting least_served_waiting(std::uint64_t least_requests);
  void resume(int fd);
  /// All are read without turns from here on.
  void stop_following();

  /// The connection with most unfinished bytes, compared with how many requests of it were complete, and no fewer than
  /// `least`.
  std::optional<int> most_unfinished(std::size_t least) const;
  /// Looks once at what waits in the sockets for the clients to read. Returns those that found the same, and much, in
  /// each of the last kStalledSamples samples.
  std::vector<int> sample_stalled();
  static constexpr int kStalledSamples = 10;
  /// Less is what any client may leave for a moment, and an idle one for ever.
  static constexpr int kStalledBytes = 16 << 10;

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
    client_reads::Followed followed = {};
    int unsent = 0;  ///< in the last sample
    int stalled_samples = 0;
    double lately = 0;  ///< what was read of it, less the longer it is ago
    std::uint64_t work_seen = 0;
    std::chrono::steady_clock::time_point seen_at{};
  };
  void stop_following(int fd);
  static void update_lately(Connection& connection, const client_reads::Reads& reads);

  std::unordered_map<int, Connection> open_;
  std::uint64_t last_order_ = 0;
};

/// The process that connected to this unix socket; 0 if the kernel does not say.
pid_t peer_process(int connection_fd);

}  // namespace topolet::cri
