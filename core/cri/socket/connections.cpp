#include "core/cri/socket/connections.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace topolet::cri {

void Connections::add(UniqueFd duplicate, pid_t process) {
  const int fd = duplicate.get();
  open_.insert_or_assign(fd, Connection{std::move(duplicate), process, ++last_order_});
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

bool Connections::sample_backlogs() {
  for (auto& [fd, connection] : open_) {
    int unread = 0;
    int unsent = 0;
    ::ioctl(fd, SIOCINQ, &unread);
    ::ioctl(fd, SIOCOUTQ, &unsent);
    if (unread >= kBacklogBytes || unsent >= kBacklogBytes) ++connection.backlogs;
  }
  return ++samples_ >= kSamples;
}

std::vector<int> Connections::take_backlogged() {
  // A flood may be sampled in the moment in which its socket was just emptied.
  constexpr int kEnough = kSamples - 2;
  std::vector<int> fds;
  if (samples_ < kSamples) return fds;
  samples_ = 0;
  for (auto& [fd, connection] : open_) {
    if (std::exchange(connection.backlogs, 0) >= kEnough) fds.push_back(fd);
  }
  return fds;
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
