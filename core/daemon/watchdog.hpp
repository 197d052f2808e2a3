// Tells the service manager's watchdog whether the daemon's event loops turn.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/log_fwd.hpp"

namespace topolet::daemon {

/// Asks event loops, again and again, to run a function of its own, and tells when all of them have. While one of them
/// stands still nothing is told, so that whoever listens can take the process for hung.
class Watchdog {
 public:
  struct Loop {
    std::string name;    ///< for the log
    std::string effect;  ///< the same: what does not go on while it stands still
    /// Queues the function on the loop and returns. A loop that has ended may drop it.
    std::function<void(std::function<void()> work)> post;
  };
  struct Options {
    std::chrono::milliseconds every{2000};        ///< between the end of a round and the next one
    std::chrono::milliseconds warn_after{10000};  ///< then the log names the loops that stand still
  };
  /// `on_round` runs on the thread of the watchdog whenever every loop has turned once more. `log` must outlive it.
  Watchdog(const Options& options, std::vector<Loop> loops, std::function<void()> on_round, Log& log);
  /// Does not wait for the loops. Work that is still queued on them does nothing.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  class Round;
  void run();
  bool all_turn();

  const Options options_;
  const std::vector<Loop> loops_;
  const std::function<void()> on_round_;
  Log& log_;
  const std::shared_ptr<Round> round_;  ///< shared with what is queued on the loops
  std::thread thread_;
};

}  // namespace topolet::daemon
