// What a plugin may keep for ever: the hosts, capabilities and sinks that it is shown.
#pragma once

#include <topolet/abi.h>
#include <topolet/log.h>
#include <topolet/state.h>
#include <topolet/wake.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <shared_mutex>
#include <string>

#include "core/plugin/call/sink_replies.hpp"

namespace topolet::plugin {

class PluginHost;

/// Sets the name by which this program introduces itself to plugins whose instances are made from now on; without, it
/// is "topoletd". `name` must outlive the process.
void introduce_host_as(const char* name);

/// The functions of the host that are the same for every instance.
struct HostFunctions {
  const void* (*get_capability)(const topolet_host* host, topolet_str id);
  topolet_log log;
  topolet_state state;
  topolet_wake wake;
};

/// Leads from the host that one instance is shown to the PluginHost that answers, as long as that lives. Itself it
/// lives until the process ends. Safe from any thread.
class HostLink {
 public:
  void show(const HostFunctions& functions) { functions_ = &functions; }
  /// Before the host is shown.
  void begin(PluginHost& host, bool has_state) {
    host_ = &host;
    has_state_ = has_state;
  }
  const HostFunctions& functions() const { return *functions_; }
  bool has_state() const { return has_state_; }
  /// From now on nobody is led to the PluginHost any more. Waits for those that are on it.
  void end();

  /// While it lives, so does the PluginHost that it leads to.
  class Visit {
   public:
    explicit Visit(HostLink& link);
    /// Null where the life has ended.
    PluginHost* host() const { return host_; }

   private:
    std::shared_lock<std::shared_mutex> lock_;
    PluginHost* host_ = nullptr;
  };

 private:
  const HostFunctions* functions_ = nullptr;
  bool has_state_ = false;
  std::atomic<bool> has_ended_ = false;
  std::shared_mutex mutex_;
  PluginHost* host_ = nullptr;
};

/// What one instance is shown. No other plugin is shown this memory, nobody can write to it, and it is never freed.
struct KeptByPlugin {
  const topolet_host* host;
  const Sinks* sinks;
  HostLink* link;
};

/// Returns it for a new instance of `plugin`, on a page with those of its earlier ones. Throws std::bad_alloc.
KeptByPlugin kept_by_new_instance(const std::string& plugin, const HostFunctions& functions);

}  // namespace topolet::plugin
