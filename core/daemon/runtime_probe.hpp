// Tells whether the container runtime answers: a hung process keeps its connections.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "core/base/clock.hpp"
#include "core/cri/call.hpp"

namespace topolet::daemon {

/// Asks the runtime for its version, one call at a time. Any thread may call any function.
class RuntimeProbe {
 public:
  struct Options {
    /// From one answer to the next call.
    std::chrono::milliseconds every{5000};
    /// For one answer. Longer than a runtime takes that has much to do.
    std::chrono::milliseconds patience{15'000};
    Clock clock = {};
  };
  /// `runtime` outlives it.
  RuntimeProbe(cri::Runtime& runtime, Options options);

  /// To be called again and again: asks when it is time to.
  void check();
  /// False from when a call was not answered in time until one is, with an error too: who refuses is there. True while
  /// nobody knows.
  bool answers() const { return state_->answers; }

 private:
  struct State {
    std::atomic<bool> answers{true};
    std::atomic<bool> is_asked{false};  ///< a call is under way
    std::atomic<std::chrono::steady_clock::time_point> next{};
  };

  cri::Runtime& runtime_;
  const Options options_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();  ///< an answer may come when the probe is gone
};

}  // namespace topolet::daemon
