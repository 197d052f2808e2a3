#include "core/cli/daemon_client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/unique_fd.hpp"
#include "core/base/unix_address.hpp"
#include "core/cli/options.hpp"

namespace topolet::cli {
namespace {

constexpr const char* kNameAnother = "name topoletd's configuration with --config or its socket with --socket";

/// Explains why connecting failed, and what to do. `error_number`: connect's.
Error unreachable(const std::string& socket, int error_number) {
  const auto because = [&socket](Code code, const std::string& why) {
    return Error{code, fmt::format("topoletd does not answer on {}: {}", socket, why)};
  };
  struct stat file {};
  const bool is_there = ::stat(socket.c_str(), &file) == 0;
  if (error_number == EACCES || error_number == EPERM) {
    return {
        Code::kPermissionDenied,
        fmt::format("you may not connect to topoletd's socket {}: {}. It is for the user that topoletd runs as; run "
                    "this command as root, for example with sudo",
                    socket, std::strerror(error_number))};
  }
  if (is_there && !S_ISSOCK(file.st_mode)) {
    return because(Code::kUnavailable, fmt::format("this is a {}, not a socket; {}",
                                                   S_ISDIR(file.st_mode) ? "directory" : "file", kNameAnother));
  }
  if (error_number == ECONNREFUSED) {
    return because(Code::kUnavailable,
                   fmt::format("nobody listens on this socket; start topoletd with `systemctl start "
                               "topoletd`, or {}",
                               kNameAnother));
  }
  if (error_number == EPROTOTYPE) {
    return because(Code::kUnavailable,
                   fmt::format("another program's socket, as it is of another type; {}", kNameAnother));
  }
  if (error_number == EAGAIN) {
    return because(
        Code::kUnavailable,
        fmt::format("somebody listens, but accepts no connections: the queue of those that wait is full; see "
                    "topoletd's log, or {}",
                    kNameAnother));
  }
  return because(Code::kUnavailable, fmt::format("{}; start it with `systemctl start topoletd`, or {}",
                                                 std::strerror(error_number), kNameAnother));
}

/// Asks the kernel, whose words are plainer than gRPC's. It would wait for ever where nobody accepts.
Status check_socket(const std::string& socket) {
  const auto address = unix_address(socket);
  if (!address) return Error{Code::kInvalidArgument, address.error().message};
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.get(), as_sockaddr(*address), sizeof(sockaddr_un)) == 0) return {};
  return unreachable(socket, errno);
}

/// Fails soon where something listens that speaks another protocol, or nothing at all.
std::shared_ptr<grpc::Channel> channel_to(const std::string& socket) {
  constexpr int kConnectTimeoutMs = 10'000;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

DaemonClient::DaemonClient(std::string socket)
    : socket_(std::move(socket)), stub_(control::v1::Control::NewStub(channel_to(socket_))) {}

Result<DaemonClient> DaemonClient::connect(const Invocation& invocation) {
  const auto socket = control_socket(invocation);
  if (!socket) return socket.error();
  const std::string path(without_unix_scheme(*socket));
  if (Status there = check_socket(path); !there) return there.error();
  return DaemonClient(path);
}

Error DaemonClient::explained(const grpc::Status& status) const {
  const auto code = static_cast<Code>(status.error_code());
  if (code == Code::kUnimplemented) {
    return {code,
            fmt::format("what answers on {} is not topoletd's control socket (daemon.control), but for example the "
                        "socket of the CRI ({}); {}",
                        socket_, status.error_message(), kNameAnother)};
  }
  if (code == Code::kDeadlineExceeded) {
    return {code, fmt::format("topoletd did not answer on {} within {} s; see its log", socket_, kCallTimeout.count())};
  }
  // If topoletd answers with this code, the message is its own and not gRPC's.
  const bool is_connected = status.error_message().find("topoletd") != std::string::npos;
  if (code == Code::kUnavailable && !is_connected) {
    return {code, fmt::format("somebody listens on {}, but does not answer as topoletd would ({}); {}", socket_,
                              status.error_message(), kNameAnother)};
  }
  // A call that the daemon refuses is a failure, not a usage error of the command.
  return {code == Code::kInvalidArgument ? Code::kFailedPrecondition : code, status.error_message()};
}

}  // namespace topolet::cli
