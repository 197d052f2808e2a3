// The host as a plugin sees it, which notices who calls it when its instance has been destroyed.
#pragma once

#include <topolet/abi.h>
#include <topolet/log.h>
#include <topolet/state.h>
#include <topolet/wake.h>

#include <atomic>
#include <functional>
#include <string>

namespace topolet::plugin_checker {

/// Passes each call on to `real`, until end(). It must stay for ever, as the plugin may call it at any time.
class WatchedHost {
 public:
  /// `on_late_call`: gets the name of the function that was called after end(). On any thread.
  WatchedHost(const topolet_host* real, std::function<void(const std::string& function)> on_late_call);
  WatchedHost(const WatchedHost&) = delete;
  WatchedHost& operator=(const WatchedHost&) = delete;

  const topolet_host* view() const { return &view_; }
  /// The instance has been destroyed: `real` is not called any more.
  void end() { has_ended_ = true; }

 private:
  static WatchedHost& host_of(const topolet_host* view) { return *static_cast<WatchedHost*>(view->context); }
  /// True if the call may be passed on.
  bool may_call(const char* function) const;

  const topolet_host* real_;
  std::function<void(const std::string&)> on_late_call_;
  std::atomic<bool> has_ended_ = false;
  const topolet_log* real_log_ = nullptr;
  const topolet_state* real_state_ = nullptr;
  const topolet_wake* real_wake_ = nullptr;
  topolet_host view_;
  topolet_log log_{};
  topolet_state state_{};
  topolet_wake wake_{};
};

}  // namespace topolet::plugin_checker
