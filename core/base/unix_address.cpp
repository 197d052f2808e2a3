#include "core/base/unix_address.hpp"

#include <fmt/format.h>

#include <cstring>

namespace topolet {

std::string_view without_unix_scheme(std::string_view address) {
  constexpr std::string_view kScheme = "unix://";
  return address.substr(0, kScheme.size()) == kScheme ? address.substr(kScheme.size()) : address;
}

Result<sockaddr_un> unix_address(const std::string& path) {
  if (path.empty() || path.size() > kMaxSocketPath) {
    return Error{
        Code::kInvalidArgument,
        fmt::format("'{}' cannot be the path of a socket: it must have 1 to {} characters", path, kMaxSocketPath)};
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace topolet
