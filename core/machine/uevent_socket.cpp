#include "core/machine/uevent_socket.hpp"

#include <fmt/format.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

namespace topolet::machine {
namespace {

/// Whatever the kernel sends without being asked for it; udevd sends to group 2.
constexpr unsigned kKernelGroup = 1;
/// The longest message that the kernel makes (UEVENT_BUFFER_SIZE) is 2 KiB.
constexpr std::size_t kLongestMessage = 4096;

}  // namespace

std::optional<std::uint32_t> cpu_of_uevent(std::string_view message) {
  const std::string_view head = message.substr(0, message.find('\0'));
  const auto at = head.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view action = head.substr(0, at);
  if (action != "online" && action != "offline" && action != "add" && action != "remove") return std::nullopt;
  constexpr std::string_view kCpus = "/devices/system/cpu/cpu";
  std::string_view path = head.substr(at + 1);
  if (path.substr(0, kCpus.size()) != kCpus) return std::nullopt;
  path.remove_prefix(kCpus.size());
  std::uint32_t cpu = 0;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), cpu);
  const bool is_number = error == std::errc() && end == path.data() + path.size();
  if (!is_number || cpu > kMaxOsIndex) return std::nullopt;
  return cpu;
}

Result<UeventSocket> UeventSocket::open() {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int cause = errno;
    return Error{Code::kUnavailable,
                 fmt::format("the kernel's uevents cannot be listened to: {}", std::strerror(cause))};
  }
  return UeventSocket(std::move(fd));
}

UeventSocket::Heard UeventSocket::read() {
  Heard heard;
  std::array<char, kLongestMessage> buffer;
  while (true) {
    sockaddr_nl sender{};
    socklen_t sender_size = sizeof sender;
    const ssize_t size =
        ::recvfrom(fd_.get(), buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&sender), &sender_size);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == ENOBUFS) {
      heard.lost_some = true;
      continue;
    }
    if (size < 0) return heard;
    // Any process with CAP_NET_ADMIN may send to the group; the kernel's own port is 0.
    if (sender.nl_pid != 0) continue;
    const auto cpu = cpu_of_uevent({buffer.data(), static_cast<std::size_t>(size)});
    if (cpu) heard.cpus.insert(*cpu);
  }
}

}  // namespace topolet::machine
