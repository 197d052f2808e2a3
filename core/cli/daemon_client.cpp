#include "core/cli/daemon_client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "core/base/unique_fd.hpp"
#include "core/base/unix_address.hpp"
#include "core/cli/options.hpp"

namespace topolet::cli {
namespace {

/// Asks the kernel, whose words are plainer than gRPC's.
Status check_socket(const std::string& socket) {
  const auto address = unix_address(socket);
  if (!address) return address.error();
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), as_sockaddr(*address), sizeof(sockaddr_un)) == 0) return {};
  const char* remedy = errno == EACCES ? "only the owner of the socket may connect; run this as root"
                                       : "start it with `systemctl start topoletd`, or name its configuration "
                                         "with --config or its socket with --socket";
  return Error{Code::kUnavailable,
               fmt::format("topoletd does not answer on {}: {}; {}", socket, std::strerror(errno), remedy)};
}

}  // namespace

Result<DaemonClient> DaemonClient::connect(const Invocation& invocation) {
  const auto socket = control_socket(invocation);
  if (!socket) return socket.error();
  const std::string path(without_unix_scheme(*socket));
  if (Status there = check_socket(path); !there) return there.error();
  return DaemonClient(
      control::v1::Control::NewStub(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials())));
}

}  // namespace topolet::cli
