#include "tests/integration/runtime_keeper.hpp"

#include <chrono>
#include <iostream>

namespace topolet::integration {
namespace {

/// As systemd waits before it starts a service again (RestartSec).
constexpr std::chrono::milliseconds kRestartDelay(100);

}  // namespace

RuntimeKeeper::RuntimeKeeper(const PrivateRuntime& runtime) : runtime_(runtime), thread_([this] { keep(); }) {}

RuntimeKeeper::~RuntimeKeeper() {
  ends_ = true;
  thread_.join();
}

void RuntimeKeeper::keep() {
  while (!ends_) {
    std::this_thread::sleep_for(kRestartDelay);
    if (!runtime_.has_died()) continue;
    std::cout << "containerd has died, and is started again; its log says why" << std::endl;
    if (const Status started = runtime_.start_again(); !started) std::cout << started.error().message << std::endl;
    ++restarts_;
  }
}

}  // namespace topolet::integration
