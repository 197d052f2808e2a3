// The steps from a path to a listening unix socket.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet::cri {

/// Holds PATH.lock for as long as the descriptor is open. FAILED_PRECONDITION if somebody else holds it.
Result<UniqueFd> lock_socket(const std::string& path);

/// Removes the socket file that a dead process left at `path`; nothing there is fine. FAILED_PRECONDITION if a process
/// listens on it, or if it is not a socket.
Status clear_socket_path(const std::string& path);

struct SocketAccess {
  mode_t mode = 0660;
  uid_t owner = static_cast<uid_t>(-1);  ///< −1: as the process
  gid_t group = static_cast<gid_t>(-1);
};
/// Returns the access rights of the socket at `path`, or `fallback` if there is none.
SocketAccess access_like(const std::string& path, const SocketAccess& fallback);

/// The group of that name or number. INVALID_ARGUMENT if there is none.
Result<gid_t> find_group(const std::string& name_or_number);

/// The user of the path of a socket that topoletd is to listen on.
enum class SocketUse : std::uint8_t {
  kFree,       ///< nobody; a dead process may have left its file there
  kTopoletds,  ///< a topoletd that runs
  kSystemds,   ///< systemd, as for a socket unit
};
/// Finds obstacles that would keep the functions here, and the creation of the path's directories, from getting to a
/// listening socket, without changing anything. The errors are theirs.
Result<SocketUse> inspect_socket(const std::string& path, const SocketAccess& access);

/// A non-blocking listening socket at `path`, which nobody but those that `access` lets in could ever connect to.
Result<UniqueFd> listen_on(const std::string& path, const SocketAccess& access);

}  // namespace topolet::cri
