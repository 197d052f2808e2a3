// Addresses of unix sockets, as people write them and as the kernel takes them.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/result.hpp"

namespace topolet {

/// The longest path that the kernel takes, in bytes.
inline constexpr std::size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

/// "/run/x.sock" of "unix:///run/x.sock"; anything else as it is.
std::string_view without_unix_scheme(std::string_view address);

/// INVALID_ARGUMENT if the path is empty or too long.
Result<sockaddr_un> unix_address(const std::string& path);

inline const sockaddr* as_sockaddr(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

}  // namespace topolet
