#include "core/cri/socket/descriptor_limit.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "core/base/log.hpp"

namespace topolet::cri {
namespace {

constexpr rlim_t kPerConnection = 2;
/// The database, the runtime's connections, cgroup files, libraries.
constexpr rlim_t kReservedDescriptors = 128;

}  // namespace

std::size_t limit_connections(std::size_t connections, Log& log) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t supported =
      limit.rlim_cur > kReservedDescriptors ? (limit.rlim_cur - kReservedDescriptors) / kPerConnection : 1;
  if (connections <= supported) return connections;
  log.warn(
      "daemon.max-connections = {} needs {} file descriptors, but the process may open only {}; {} connections are "
      "accepted at most. Raise the limit (LimitNOFILE= in the unit) or lower the option",
      connections, connections * kPerConnection + kReservedDescriptors, limit.rlim_cur, supported);
  return static_cast<std::size_t>(supported);
}

}  // namespace topolet::cri
