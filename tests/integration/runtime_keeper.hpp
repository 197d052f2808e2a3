// Has a runtime that dies come back, as the service manager of a node does.
#pragma once

#include <atomic>
#include <thread>

#include "tests/integration/node.hpp"

namespace topolet::integration {

/// As long as it lives, the runtime is started again whenever it has died. Safe from any thread.
class RuntimeKeeper {
 public:
  /// `runtime` must outlive this.
  explicit RuntimeKeeper(const PrivateRuntime& runtime);
  ~RuntimeKeeper();
  RuntimeKeeper(const RuntimeKeeper&) = delete;
  RuntimeKeeper& operator=(const RuntimeKeeper&) = delete;

  /// How often it was started again.
  int restarts() const { return restarts_; }

 private:
  void keep();

  const PrivateRuntime& runtime_;
  std::atomic<bool> ends_ = false;
  std::atomic<int> restarts_ = 0;
  std::thread thread_;
};

}  // namespace topolet::integration
