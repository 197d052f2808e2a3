#include "core/daemon/runtime_probe.hpp"

#include <utility>

namespace topolet::daemon {
namespace {

constexpr const char* kVersion = "/runtime.v1.RuntimeService/Version";

}  // namespace

RuntimeProbe::RuntimeProbe(cri::Runtime& runtime, Options options) : runtime_(runtime), options_(std::move(options)) {}

void RuntimeProbe::check() {
  const auto now = [clock = options_.clock] { return clock.steady(); };
  if (now() < state_->next.load() || state_->is_asked.exchange(true)) return;
  const auto done = [state = state_, now, every = options_.every](const cri::RuntimeResponse& response) {
    state->answers = response.code != Code::kDeadlineExceeded;
    state->next = now() + every;
    state->is_asked = false;
  };
  // A request without the version of the client, which runtimes do not look at.
  runtime_.call(kVersion, "", options_.patience, done);
}

}  // namespace topolet::daemon
