// Stands between the host's own code and a plugin's instance, and shows the plugin what a later host, or one that has
// abandoned the call, would show.
#pragma once

#include <topolet/abi.h>
#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/score.h>
#include <topolet/tick.h>

#include <cstdint>
#include <functional>

#include "core/plugin_checker/enlarged_structs.hpp"

namespace topolet::plugin_checker {

/// Passes every call on to the plugin's instance, with longer structs. Must outlive whoever uses its view. Destroys the
/// plugin's instance when it is destroyed through its view.
class InstanceProxy {
 public:
  explicit InstanceProxy(const topolet_instance* plugin, ShownValues values = ShownValues::kKnown);
  InstanceProxy(const InstanceProxy&) = delete;
  InstanceProxy& operator=(const InstanceProxy&) = delete;

  const topolet_instance* view() const { return &view_; }

  /// Runs inside each call, before the plugin is entered.
  std::function<void()> before_call = [] {};

 private:
  /// Calls the plugin's function with larger structs, which are read-only.
  template <class Function, class Request, class Sink>
  std::int32_t pass_on(Function* function, const Request* request, const Sink* sink) const;
  static const void* get_capability(const topolet_instance* instance, topolet_str id);
  static void destroy(const topolet_instance* instance);

  const topolet_instance* plugin_;
  const ShownValues values_;
  topolet_instance view_{};
  const topolet_score* plugin_score_ = nullptr;
  const topolet_propose* plugin_propose_ = nullptr;
  const topolet_pick* plugin_pick_ = nullptr;
  const topolet_adjust* plugin_adjust_ = nullptr;
  const topolet_events* plugin_events_ = nullptr;
  const topolet_tick* plugin_tick_ = nullptr;
  topolet_score score_{};
  topolet_propose propose_{};
  topolet_pick pick_{};
  topolet_adjust adjust_{};
  topolet_events events_{};
  topolet_tick tick_{};
};

}  // namespace topolet::plugin_checker
