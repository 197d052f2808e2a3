#include "core/cli/daemon_client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "core/base/unique_fd.hpp"

namespace topolet::cli {
namespace {

/// Asks the kernel, whose words are plainer than gRPC's.
Status check_socket(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof(address.sun_path)) {
    return Error{Code::kInvalidArgument, fmt::format("'{}' cannot be a socket's path", socket)};
  }
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return {};
  const char* way_out = errno == EACCES ? "only its owner may ask: run this as root"
                                        : "start it with `systemctl start topoletd`, or name its socket "
                                          "(daemon.control of its configuration) with --socket";
  return Error{Code::kUnavailable,
               fmt::format("topoletd does not answer on {}: {}; {}", socket, std::strerror(errno), way_out)};
}

}  // namespace

Result<DaemonClient> DaemonClient::connect(const std::string& socket) {
  const std::string path = socket.rfind("unix://", 0) == 0 ? socket.substr(7) : socket;
  if (Status there = check_socket(path); !there) return there.error();
  return DaemonClient(
      control::v1::Control::NewStub(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials())));
}

}  // namespace topolet::cli
