#include "core/plugin/guard/call_turns.hpp"

namespace topolet::plugin {

void CallTurns::begin(const std::string& plugin) {
  MutexLock lock(mutex_);
  while (!in_call_.insert(plugin).second) ended_.wait(mutex_);
}

bool CallTurns::begin_until(const std::string& plugin, std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (!in_call_.insert(plugin).second) {
    if (!ended_.wait_until(mutex_, deadline)) return in_call_.insert(plugin).second;
  }
  return true;
}

void CallTurns::end(const std::string& plugin) {
  MutexLock lock(mutex_);
  in_call_.erase(plugin);
  ended_.notify_all();
}

}  // namespace topolet::plugin
