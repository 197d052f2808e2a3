// Makes the runtime slow in some places, as a busy machine may.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace topolet::integration {

/// As long as it lives, the shim of one container after another stands still for a moment: the container runs on, and
/// what is asked of it, such as an update of its CPUs, takes that much longer. Safe from any thread.
class SlowShims {
 public:
  /// `containers`: their processes, which must outlive this.
  SlowShims(const std::vector<pid_t>& containers, std::uint32_t seed);
  ~SlowShims();
  SlowShims(const SlowShims&) = delete;
  SlowShims& operator=(const SlowShims&) = delete;

  /// When it returns, no shim stands still, and none will until they are slow again.
  void make_fast();
  void make_slow();

 private:
  enum class Mode { kSlow, kFast, kOver };

  void slow_down();
  /// For a random time, or until `mode_` changes.
  void pause(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds longest);
  void set(Mode mode);

  std::vector<pid_t> shims_;
  std::mt19937 dice_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Mode mode_ = Mode::kSlow;
  bool one_stands_still_ = false;
  std::thread thread_;
};

}  // namespace topolet::integration
