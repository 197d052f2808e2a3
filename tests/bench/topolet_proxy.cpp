#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/base/log.hpp"
#include "core/cri/messages/intercepted_methods.hpp"
#include "core/cri/socket/listener.hpp"
#include "core/cri/wire/proxy.hpp"
#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

cri::ProxyHooks daemon_hooks(std::atomic<std::size_t>& seen_bytes) {
  cri::ProxyHooks hooks;
  hooks.intercepted = cri::intercepted_names();
  hooks.observed = cri::observed_names();
  hooks.on_call = [](const std::shared_ptr<cri::Call>& call) {
    call->reject({Code::kUnimplemented, "nothing decides here; measure a method that is not intercepted"});
  };
  hooks.on_observed = [&seen_bytes](const cri::ObservedMessage& seen) {
    seen_bytes += seen.request.size() + seen.response.size();
  };
  return hooks;
}

}  // namespace

void run_topolet_proxy(const std::string& listen, const std::string& runtime) {
  const std::shared_ptr<Log> log = make_silent_log();
  std::atomic<std::size_t> seen_bytes = 0;
  cri::Proxy proxy({.runtime_endpoint = "unix://" + runtime}, daemon_hooks(seen_bytes), *log);
  auto listener = cri::Listener::open({.path = listen}, *log);
  if (!listener) throw std::runtime_error(listener.error().message);
  proxy.start();
  (*listener)->start([&proxy](UniqueFd connection) { proxy.accept(std::move(connection)); });
  while (true) ::pause();
}

}  // namespace topolet::bench
