// The program that runtimes start as a pre-installed NRI plugin: 50-topolet, in their directory of plugins. Before it
// serves anybody, the runtime tells such a plugin of its containers; so none is created without topolet. The program
// hands its connection to topoletd, and waits to be ended by the runtime.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "core/base/unique_fd.hpp"
#include "core/base/unix_address.hpp"

namespace topolet::nri {
namespace {

/// The descriptor that NRI gives to the programs it starts.
constexpr int kConnection = 3;
/// Less than a runtime waits for a plugin to register, which is five seconds.
constexpr std::chrono::seconds kPatience{4};
constexpr std::chrono::milliseconds kBetweenAttempts{20};
constexpr const char* kUsualSocket = "/run/topolet/control.sock.take-over";

/// The first line of the file 50-topolet.socket beside the program; the usual one where there is no such file.
std::string find_socket() {
  std::array<char, 4096> program{};
  if (::readlink("/proc/self/exe", program.data(), program.size() - 1) <= 0) return kUsualSocket;
  std::ifstream file(std::string(program.data()) + ".socket");
  std::string path;
  return std::getline(file, path) && !path.empty() ? path : kUsualSocket;
}

/// Sends the connection, and waits for the answer. False if topoletd does not take it.
bool hand_over(const std::string& path) {
  const auto address = unix_address(path);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!address || ::connect(socket.get(), as_sockaddr(*address), sizeof(sockaddr_un)) != 0) return false;
  std::string text = "{\"nri-plugin\": true}\n";
  iovec bytes{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &kConnection, sizeof(int));
  if (::sendmsg(socket.get(), &header, MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) return false;
  std::array<char, 256> answer{};
  const ssize_t length = ::read(socket.get(), answer.data(), answer.size());
  return length > 0 && std::string(answer.data(), static_cast<std::size_t>(length)).find("done") != std::string::npos;
}

int run() {
  if (std::getenv("NRI_PLUGIN_SOCKET") == nullptr) {
    std::fprintf(stderr, "this program is started by a container runtime, from its directory of NRI plugins\n");
    return EXIT_FAILURE;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const std::string socket = find_socket();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!hand_over(socket)) {
    // Where no topoletd runs, as at boot, the runtime does not wait for one.
    if (::access(socket.c_str(), F_OK) != 0 || std::chrono::steady_clock::now() >= until) {
      std::fprintf(stderr, "topoletd does not take the plugin's connection on %s\n", socket.c_str());
      return EXIT_FAILURE;
    }
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  // The connection ends with topoletd.
  ::close(kConnection);
  while (true) ::pause();
}

}  // namespace
}  // namespace topolet::nri

int main() { return topolet::nri::run(); }
