#include "core/daemon/descriptors.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace topolet {
namespace {

constexpr rlim_t kPerConnection = 2;
/// The database, the runtime's connections, cgroup files, libraries.
constexpr rlim_t kForTheRest = 128;

}  // namespace

std::size_t allow_connections(std::size_t connections, Log& log) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t room = limit.rlim_cur > kForTheRest ? (limit.rlim_cur - kForTheRest) / kPerConnection : 1;
  if (connections <= room) return connections;
  log.warn(
      "daemon.max-connections = {} needs {} descriptors, and the process may open {}; taking {} connections at most. "
      "Raise the limit (LimitNOFILE= in the unit) or lower the option",
      connections, connections * kPerConnection + kForTheRest, limit.rlim_cur, room);
  return static_cast<std::size_t>(room);
}

}  // namespace topolet
