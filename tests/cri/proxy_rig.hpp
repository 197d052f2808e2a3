// A client, the proxy on its listener, and a recording runtime, on real sockets in a temporary directory.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/base/log.hpp"
#include "core/cri/listener.hpp"
#include "core/cri/proxy.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/recording_runtime.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {

/// The proxy on a socket of its own. The runtime may come later.
struct ProxyRig {
  explicit ProxyRig(const TempDir& directory, ProxyHooks hooks = {}, ProxyOptions options = {})
      : proxy(with_endpoint(directory, std::move(options)), std::move(hooks), *log),
        listener(std::move(Listener::open({.path = directory.file("topolet.sock"), .like = {}}, *log).value())),
        client("unix://" + directory.file("topolet.sock")) {
    proxy.start();
    listener->start([this](UniqueFd connection) { proxy.accept(std::move(connection)); });
  }
  ~ProxyRig() { listener->stop(); }

  static ProxyOptions with_endpoint(const TempDir& directory, ProxyOptions options) {
    options.runtime_endpoint = "unix://" + directory.file("runtime.sock");
    return options;
  }

  std::shared_ptr<Log> log = make_silent_log();
  Proxy proxy;
  std::unique_ptr<Listener> listener;
  RawClient client;
};

}  // namespace topolet::testing
