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

/// Weighs a client by its answered calls: one that was served before is worth more than one that has only begun some.
double answered_weight(std::uint64_t answered) {
  constexpr std::uint64_t kMost = 16;
  return static_cast<double>(std::min(answered + 1, kMost));
}

/// Returns the share of an answer that counts after it has not been read for so long: any client takes a moment for a
/// large one.
double share_unread(std::chrono::milliseconds time) {
  constexpr double kLeast = 0.05;
  return std::clamp(std::chrono::duration<double>(time).count(), kLeast, 1.0);
}

}  // namespace

void Connections::add(UniqueFd duplicate, pid_t process, const client_reads::Followed& followed) {
  const int fd = duplicate.get();
  Connection connection{.duplicate = std::move(duplicate), .process = process, .order = ++last_order_};
  connection.followed = followed;
  connection.seen_at = std::chrono::steady_clock::now();
  open_.insert_or_assign(fd, std::move(connection));
}

void Connections::set_calls(int fd, std::shared_ptr<const ClientCalls> calls) {
  if (const auto found = open_.find(fd); found != open_.end()) found->second.calls = std::move(calls);
}

ClientCalls::Load Connections::load_of(const Connection& connection) {
  return connection.calls == nullptr ? ClientCalls::Load() : connection.calls->load();
}

void Connections::remove(int fd) {
  stop_following(fd);
  open_.erase(fd);
}

void Connections::end_reading(int fd) {
  if (const auto found = open_.find(fd); found != open_.end()) client_reads::end(found->second.followed);
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

Connections::Waiting Connections::least_served_waiting(std::uint64_t least_answered) {
  Waiting waiting;
  double least = std::numeric_limits<double>::infinity();
  for (auto& [fd, connection] : open_) {
    const client_reads::Reads reads = client_reads::look_at(connection.followed);
    if (!reads.waits) continue;
    waiting.any = true;
    if (unread_by_peer(fd) >= kStalledBytes) continue;
    const std::uint64_t answered = load_of(connection).answered;
    if (answered < least_answered) continue;
    update_lately(connection, reads);
    const double served = (connection.lately + static_cast<double>(reads.unfinished_bytes)) / answered_weight(answered);
    if (served >= least) continue;
    least = served;
    waiting.next = fd;
  }
  return waiting;
}

void Connections::resume(int fd) {
  if (const auto found = open_.find(fd); found != open_.end()) client_reads::resume(found->second.followed, fd);
}

bool Connections::has_requests_on_the_way(int fd) const {
  const auto found = open_.find(fd);
  if (found == open_.end()) return false;
  const std::uint64_t begun = client_reads::look_at(found->second.followed).begun_requests;
  return begun > load_of(found->second).arrived + found->second.never_arrive;
}

void Connections::forget_requests_on_the_way(int fd) {
  if (!has_requests_on_the_way(fd)) return;
  Connection& connection = open_.at(fd);
  connection.never_arrive = client_reads::look_at(connection.followed).begun_requests - load_of(connection).arrived;
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

std::size_t Connections::awaited_requests(std::uint64_t known_after) const {
  constexpr std::size_t kOfKnown = 4;
  std::size_t requests = 0;
  for (const auto& [fd, connection] : open_) {
    const ClientCalls::Load load = load_of(connection);
    requests += load.answered >= known_after ? load.awaited_requests / kOfKnown : load.awaited_requests;
  }
  return requests;
}

template <class Weigh>
std::optional<Connections::Heaviest> Connections::heaviest_by(Weigh weigh) const {
  std::optional<Heaviest> found;
  double most = 0;
  for (const auto& [fd, connection] : open_) {
    const ClientCalls::Load load = load_of(connection);
    const bool stalled = connection.stalled_samples >= kStalledSamples;
    const std::size_t bytes = client_reads::look_at(connection.followed).unfinished_bytes + load.bytes;
    const double weight = weigh(load, bytes, stalled);
    if (weight <= most) continue;
    most = weight;
    found = {.fd = fd,
             .bytes = bytes,
             .weight = weight,
             .awaited_requests = load.awaited_requests,
             .is_unread = stalled || 2 * load.response_bytes > bytes,
             .calls = connection.calls};
  }
  return found;
}

std::optional<Connections::Heaviest> Connections::most_awaited() const {
  return heaviest_by([](const ClientCalls::Load& load, std::size_t /*bytes*/, bool /*stalled*/) {
    return static_cast<double>(load.awaited_requests) / answered_weight(load.answered);
  });
}

std::optional<Connections::Heaviest> Connections::heaviest(std::size_t least) const {
  return heaviest_by([least](const ClientCalls::Load& load, std::size_t bytes, bool stalled) {
    constexpr double kBeforeAllOthers = 1e6;
    if (stalled) return kBeforeAllOthers * static_cast<double>(bytes + 1);
    if (bytes < least) return 0.0;
    const auto unread = static_cast<double>(load.response_bytes);
    return (static_cast<double>(bytes) - unread * (1 - share_unread(load.unread_for))) / answered_weight(load.answered);
  });
}

// A client that reads, however slowly, hardly leaves the same number of bytes each time.
void Connections::sample_stalled() {
  for (auto& [fd, connection] : open_) {
    const int unsent = unread_by_peer(fd);
    const bool same = unsent >= kStalledBytes && unsent == std::exchange(connection.unsent, unsent);
    connection.stalled_samples = same ? connection.stalled_samples + 1 : 0;
  }
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
