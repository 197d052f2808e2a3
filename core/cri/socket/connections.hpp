// The connections that are open, and which one goes when there are too many.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "core/cri/socket/client_reads.hpp"
#include "core/cri/wire/call_admission.hpp"

namespace topolet::cri {

/// Holds a duplicate of each connection's descriptor, and goes by the duplicates' numbers. For one thread.
class Connections {
 public:
  std::size_t size() const { return open_.size(); }

  /// `process` is the one at the other end, as the kernel names it.
  void add(UniqueFd duplicate, pid_t process, const client_reads::Followed& followed = {});
  /// Sets the counts of its calls.
  void set_calls(int fd, std::shared_ptr<const ClientCalls> calls);
  void remove(int fd);
  /// Nothing more is read of it, as if its client had closed.
  void end_reading(int fd);
  void disconnect_all_connections();
  /// Returns the duplicates of all connections.
  std::vector<UniqueFd> duplicates() const;
  pid_t process_of(int fd) const;

  std::optional<client_reads::Reads> reads_of(int fd) const;
  struct Waiting {
    bool any = false;
    std::optional<int> next = std::nullopt;
  };
  /// Returns one of the connections that wait for their turn, read what they are sent, and have had so many calls
  /// answered: the one of which least was read lately and is unfinished, compared with the number of those calls.
  Waiting least_served_waiting(std::uint64_t least_answered);
  void resume(int fd);
  /// Returns true if gRPC has read requests of it that have not come to the proxy yet.
  bool has_requests_on_the_way(int fd) const;
  /// Forgets requests that have not come by now and will not: gRPC has refused them, or the client has cancelled them.
  void forget_requests_on_the_way(int fd);
  /// All are read without turns from here on.
  void stop_following();

  /// Returns the sum for all connections, see ClientCalls. For clients that have had so many calls answered, one
  /// request in four counts.
  std::size_t awaited_requests(std::uint64_t known_after) const;
  struct Heaviest {
    int fd = -1;
    std::size_t bytes = 0;  ///< that go with it
    double weight = 0;      ///< by which it is compared with others
    std::size_t awaited_requests = 0;
    bool is_unread = false;  ///< most of them are answers that the client has not read
    std::weak_ptr<const ClientCalls> calls = {};
  };
  /// Returns the connection that takes up most memory, compared with how many of its calls were answered, and no less
  /// than `least`: the bytes it has sent of requests that are not complete, and its calls. Unread answers count the
  /// more the longer they have not been read; a client that reads nothing at all goes before all others, whatever it
  /// has.
  std::optional<Heaviest> heaviest(std::size_t least) const;
  /// The one with most requests that have begun and not come yet, compared in the same way.
  std::optional<Heaviest> most_awaited() const;
  /// Looks once at what waits in the sockets for the clients to read. Those that found the same, and much, in each of
  /// the last kStalledSamples samples, read nothing.
  void sample_stalled();
  static constexpr int kStalledSamples = 10;
  /// Less is what any client may leave for a moment, and an idle one for ever.
  static constexpr int kStalledBytes = 16 << 10;

  struct ProcessConnections {
    pid_t process = 0;
    std::size_t connections = 0;
    int newest_fd = -1;
  };
  /// Returns the process that holds the most; of several, any.
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
    std::shared_ptr<const ClientCalls> calls = nullptr;
    int unsent = 0;  ///< in the last sample
    int stalled_samples = 0;
    double lately = 0;  ///< what was read of it, less the longer it is ago
    std::uint64_t work_seen = 0;
    std::uint64_t never_arrive = 0;  ///< of the requests that were begun
    std::chrono::steady_clock::time_point seen_at{};
  };
  void stop_following(int fd);
  static ClientCalls::Load load_of(const Connection& connection);
  /// `weigh(load, bytes, stalled)`: 0 leaves the connection out.
  template <class Weigh>
  std::optional<Heaviest> heaviest_by(Weigh weigh) const;
  static void update_lately(Connection& connection, const client_reads::Reads& reads);

  std::unordered_map<int, Connection> open_;
  std::uint64_t last_order_ = 0;
};

/// The process that connected to this unix socket; 0 if the kernel does not say.
pid_t peer_process(int connection_fd);

}  // namespace topolet::cri
