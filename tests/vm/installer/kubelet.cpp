// Stands in for a kubelet on the machine of `tests/vm/run --installer`: uses the runtime that its options name, keeps
// one pod, and says how it is. What it understands of a kubelet's command line is what topolet-node looks at.
//
// Below /run/stand-in: it writes `node-status`, the Node's condition Ready ("True 2026-01-01T00:00:00Z"), when it
// starts and when it changes, as a kubelet does; `failed-calls`, a line for each call that failed after one had
// succeeded; and reads `breaks-with`, an endpoint with which it does not become Ready, and `dies-with`, one with which
// it ends.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/integration/cri_client.hpp"
#include "tests/integration/node.hpp"

namespace topolet::integration {
namespace {

const std::filesystem::path kPlace = "/run/stand-in";
constexpr std::uint16_t kHealthPort = 10248;

std::string line_of(const std::string& name) {
  std::string line;
  std::getline(std::ifstream(kPlace / name), line);
  return line;
}

/// The last of --NAME=VALUE.
std::optional<std::string> option(const std::vector<std::string>& arguments, const std::string& name) {
  std::optional<std::string> value;
  for (const std::string& argument : arguments) {
    if (argument.starts_with("--" + name + "=")) value = argument.substr(name.size() + 3);
  }
  return value;
}

/// Reads a value from a file in which each line is KEY: VALUE.
std::optional<std::string> key_of(const std::filesystem::path& file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + ": ")) return line.substr(key.size() + 2);
  }
  return std::nullopt;
}

std::string endpoint_of(const std::vector<std::string>& arguments) {
  constexpr const char* kKey = "containerRuntimeEndpoint";
  std::string endpoint = "unix:///run/containerd/containerd.sock";
  if (const auto value = key_of(option(arguments, "config").value_or(""), kKey)) endpoint = *value;
  const std::filesystem::path pieces = option(arguments, "config-dir").value_or("");
  if (!pieces.empty()) {
    for (const auto& piece : std::filesystem::directory_iterator(pieces)) {
      if (const auto value = key_of(piece.path(), kKey)) endpoint = *value;
    }
  }
  return option(arguments, "container-runtime-endpoint").value_or(endpoint);
}

/// GET /healthz on 127.0.0.1, whatever the request is.
void serve_health() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kHealthPort);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener, 16) != 0) {
    std::perror("the health port");
    std::_Exit(1);
  }
  constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
  while (true) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    char request[4096];
    static_cast<void>(!::read(connection, request, sizeof(request)));
    static_cast<void>(!::write(connection, kAnswer.data(), kAnswer.size()));
    ::close(connection);
  }
}

/// Makes the pod and its container if they are not there.
Status keep_pod(CriClient& runtime) {
  const auto pods = runtime.pods({{"stand-in", "kubelet"}});
  if (!pods) return pods.error();
  if (!pods->empty()) {
    const std::string sandbox = pods->front().id();
    const auto containers = runtime.containers(sandbox);
    if (!containers) return containers.error();
    for (const cri::Container& container : *containers) {
      if (container.state() == cri::CONTAINER_RUNNING) return {};
    }
    // A pod that was begun before the images were there is begun anew.
    if (Status stopped = runtime.stop_sandbox(sandbox); !stopped) return stopped;
    if (Status removed = runtime.remove_sandbox(sandbox); !removed) return removed;
  }
  Pod pod{"web", "uid-web", burstable(100, 16 << 20), {"/", true}, {{"stand-in", "kubelet"}}, {}};
  if (Status ran = runtime.run(pod); !ran) return ran;
  const auto container = runtime.create(pod, {.image = kImage});
  if (!container) return container.error();
  return runtime.start(*container);
}

void report(bool ready) {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  std::ofstream(kPlace / "node-status.new") << (ready ? "True " : "False ") << text << '\n';
  std::filesystem::rename(kPlace / "node-status.new", kPlace / "node-status");
}

[[noreturn]] void run(const std::string& endpoint) {
  std::optional<bool> reported;
  CriClient runtime(endpoint);
  bool has_succeeded = false;
  while (true) {
    if (line_of("dies-with") == endpoint) std::_Exit(1);
    const Status kept = keep_pod(runtime);
    if (!kept) {
      std::cerr << "the runtime: " << kept.error().message << '\n';
      if (has_succeeded) std::ofstream(kPlace / "failed-calls", std::ios::app) << kept.error().message << '\n';
    }
    has_succeeded = has_succeeded || kept.has_value();
    const bool ready = kept.has_value() && line_of("breaks-with") != endpoint;
    if (reported != ready) report(ready);
    reported = ready;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

}  // namespace
}  // namespace topolet::integration

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (!arguments.empty() && arguments.front() == "--version") {
    std::puts("Kubernetes v1.34.4");
    return 0;
  }
  const std::string endpoint = topolet::integration::endpoint_of(arguments);
  std::cerr << "the runtime is " << endpoint << '\n';
  std::thread(topolet::integration::serve_health).detach();
  topolet::integration::run(endpoint);
}
