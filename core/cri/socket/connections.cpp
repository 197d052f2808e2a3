#include "core/cri/socket/connections.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/cri/wire/unread_by_peer.hpp"

namespace topolet::cri {
namespace {

/// A client whose requests were complete so far is worth more than one that has only begun some.
double merit(const client_reads::Reads& reads) {
  constexpr std::uint64_t kMost = 64;
  return static_cast<double>(std::min(reads.complete_requests + 1, kMost));
}

}  // namespace

void Connections::add(UniqueFd duplicate, pid_t process, const client_reads::Followed& followed) {
  const int fd = duplicate.get();
  Connection connection{.duplicate = std::move(duplicate), .process = process, .order = ++last_order_};
  connection.followed = followed;
  connection.seen_at = std::chrono::steady_clock::now();
  open_.insert_or_assign(fd, std::move(connection));
}

void Connections::remove(int fd) {
  stop_following(fd);
  open_.erase(fd);
}

void Connections::disconnect_all_connections() {
  for (const auto& [fd, connection] : open_) ::shutdown(fd, SHUT_RDWR);
  open_.clear();
}

std::vector<UniqueFd> Connections::duplicates() const {
  std::vector<UniqueFd> all;
  for (const auto& [fd, connection] : open_) {
    UniqueFd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (duplicate) all.push_back(std::move(duplicate));
  }
  return all;
}

Connections::ProcessConnections Connections::process_with_most() const {
  std::unordered_map<pid_t, std::size_t> counts;
  for (const auto& [fd, connection] : open_) ++counts[connection.process];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end()) return {};
  ProcessConnections largest_process{most->first, most->second, -1};
  std::uint64_t newest = 0;
  for (const auto& [fd, connection] : open_) {
    if (connection.process != largest_process.process || connection.order < newest) continue;
    newest = connection.order;
    largest_process.newest_fd = fd;
  }
  return largest_process;
}

std::size_t Connections::count_of(pid_t process) const {
  return static_cast<std::size_t>(std::count_if(
      open_.begin(), open_.end(), [process](const auto& entry) { return entry.second.process == process; }));
}

std::optional<int> Connections::connection_to_evict(pid_t newcomer) const {
  const ProcessConnections largest_process = process_with_most();
  if (largest_process.connections == 0 || count_of(newcomer) + 1 >= largest_process.connections) return std::nullopt;
  return largest_process.newest_fd;
}

std::optional<client_reads::Reads> Connections::reads_of(int fd) const {
  const auto found = open_.find(fd);
  if (found == open_.end()) return std::nullopt;
  return client_reads::look_at(found->second.followed);
}

void Connections::update_lately(Connection& connection, const client_reads::Reads& reads) {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - connection.seen_at).count();
  connection.lately = connection.lately * std::exp2(-seconds) + static_cast<double>(reads.work - connection.work_seen);
  connection.work_seen = reads.work;
  connection.seen_at = now;
}

Connections::Waiting Connections::least_served_waiting(std::uint64_t least_requests) {
  Waiting waiting;
  double least = std::numeric_limits<double>::infinity();
  for (auto& [fd, connection] : open_) {
    const client_reads::Reads reads = client_reads::look_at(connection.followed);
    if (!reads.waits) continue;
    waiting.any = true;
    if (unread_by_peer(fd) >= kStalledBytes) continue;
    if (reads.complete_requests < least_requests) continue;
    update_lately(connection, reads);
    const double served = (connection.lately + static_cast<double>(reads.unfinished_bytes)) / merit(reads);
    if (served >= least) continue;
    least = served;
    waiting.next = fd;
  }
  return waiting;
}

void Connections::resume(int fd) {
  if (const auto found = open_.find(fd); found != open_.end()) client_reads::resume(found->second.followed, fd);
}

void Connections::stop_following(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  client_reads::stop(found->second.followed);
  client_reads::resume(found->second.followed, fd);
}

void Connections::stop_following() {
  for (const auto& [fd, connection] : open_) stop_following(fd);
}

std::optional<int> Connections::most_unfinished(std::size_t least) const {
  std::optional<int> found;
  double most = 0;
  for (const auto& [fd, connection] : open_) {
    const client_reads::Reads reads = client_reads::look_at(connection.followed);
    const double weight = static_cast<double>(reads.unfinished_bytes) / merit(reads);
    if (reads.unfinished_bytes < least || weight <= most) continue;
    most = weight;
    found = fd;
  }
  return found;
}

// A client that reads, however slowly, hardly leaves the same number of bytes each time.
std::vector<int> Connections::sample_stalled() {
  std::vector<int> stalled;
  for (auto& [fd, connection] : open_) {
    const int unsent = unread_by_peer(fd);
    const bool same = unsent >= kStalledBytes && unsent == std::exchange(connection.unsent, unsent);
    connection.stalled_samples = same ? connection.stalled_samples + 1 : 0;
    if (connection.stalled_samples < kStalledSamples) continue;
    stalled.push_back(fd);
  }
  return stalled;
}

pid_t Connections::process_of(int fd) const {
  const auto found = open_.find(fd);
  return found == open_.end() ? 0 : found->second.process;
}

pid_t peer_process(int connection_fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(connection_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

}  // namespace topolet::cri
