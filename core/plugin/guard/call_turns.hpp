// Keeps a plugin from being called on two threads at a time.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "core/base/mutex.hpp"

namespace topolet::plugin {

/// One turn for each plugin, whichever of its instances is called. A call that is abandoned gives its turn back: its
/// plugin may be called again while it has not returned. Safe from any thread.
class CallTurns {
 public:
  /// Waits for the plugin's turn and takes it.
  void begin(const std::string& plugin) TOPOLET_EXCLUDES(mutex_);
  /// Does so until `deadline`. False if somebody else has it then.
  bool begin_until(const std::string& plugin, std::chrono::steady_clock::time_point deadline) TOPOLET_EXCLUDES(mutex_);
  /// Gives back the turn that the caller has.
  void end(const std::string& plugin) TOPOLET_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  CondVar ended_;
  std::set<std::string> in_call_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::plugin
