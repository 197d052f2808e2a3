// A client, the proxy on its listener, and a recording runtime, on real sockets in a temporary directory.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "core/base/log_fwd.hpp"
#include "core/cri/socket/listener.hpp"
#include "core/cri/wire/proxy.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/recording_runtime.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {

// Methods of the runtime.
constexpr const char* kVersion = "/runtime.v1.RuntimeService/Version";
constexpr const char* kCreate = "/runtime.v1.RuntimeService/CreateContainer";
constexpr const char* kEvents = "/runtime.v1.RuntimeService/GetContainerEvents";

/// A test's client, proxy and runtime share one process, whose memory (more so under sanitizers) tells nothing about
/// the proxy's: only tests that mean it have the listener hang up for it.
constexpr std::size_t kNoMemoryLimit = std::numeric_limits<std::size_t>::max();

/// The proxy on a socket of its own. The runtime may come later.
struct ProxyRig {
  explicit ProxyRig(const TempDir& directory, cri::ProxyHooks hooks = {}, cri::ProxyOptions options = {},
                    cri::ListenerOptions listening = {.max_memory_bytes = kNoMemoryLimit})
      : proxy(with_endpoint(directory, std::move(options)), std::move(hooks), *log),
        listener(std::move(cri::Listener::open(with_path(directory, std::move(listening)), *log).value())),
        client("unix://" + directory.file("topolet.sock")) {
    proxy.start();
    listener->start([this](UniqueFd connection) { return proxy.accept(std::move(connection)); },
                    [this](bool is_short) { proxy.set_memory_short(is_short); });
  }
  ~ProxyRig() { listener->stop(); }

  static cri::ListenerOptions with_path(const TempDir& directory, cri::ListenerOptions options) {
    options.path = directory.file("topolet.sock");
    return options;
  }
  static cri::ProxyOptions with_endpoint(const TempDir& directory, cri::ProxyOptions options) {
    options.runtime_endpoint = "unix://" + directory.file("runtime.sock");
    return options;
  }

  std::shared_ptr<Log> log = make_silent_log();
  cri::Proxy proxy;
  std::unique_ptr<cri::Listener> listener;
  RawClient client;
};

}  // namespace topolet::testing
