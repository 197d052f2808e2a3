// The host as plugins see it: its log and their state.
#pragma once

#include <topolet/abi.h>
#include <topolet/log.h>
#include <topolet/state.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/plugin/call/kept_page.hpp"
#include "store/plugin_state_store.hpp"

namespace topolet::plugin {

/// Limits the lines that a plugin may log: `kBurstLines` at once, and `kLinesPerSecond` in the long run. Safe from any
/// thread.
class LogRateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::uint64_t kBurstLines = 1000;
  static constexpr std::uint64_t kLinesPerSecond = 100;

  /// Nothing if the line must be dropped; otherwise how many were since the last that was not.
  std::optional<std::uint64_t> try_acquire(Time now) TOPOLET_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::uint64_t tokens_ TOPOLET_GUARDED_BY(mutex_) = kBurstLines;
  Time refilled_at_ TOPOLET_GUARDED_BY(mutex_) = {};
  std::uint64_t dropped_ TOPOLET_GUARDED_BY(mutex_) = 0;
};

/// The number of values that a plugin may keep.
inline constexpr std::size_t kMaxStateKeys = TOPOLET_STATE_MAX_VALUES;

/// Limits what plugins read of their state in one decision, as all of that goes into the record of it. While it lives,
/// the reads of this thread count.
class DecisionReads {
 public:
  DecisionReads();
  ~DecisionReads();
  DecisionReads(const DecisionReads&) = delete;
  DecisionReads& operator=(const DecisionReads&) = delete;

  /// Counts bytes that `plugin` is about to be given. False if it may not have them, nor any more in this decision.
  bool take(const std::string& plugin, std::size_t bytes);
  /// Returns true if the plugin has had a read refused.
  bool is_over(const std::string& plugin) const;

 private:
  std::map<std::string, std::size_t> bytes_;
  DecisionReads* outer_;
};

/// The life of one instance, as its plugin sees it. Must outlive the instance. What the plugin was shown outlives both:
/// its functions answer TOPOLET_LATE once this is gone. Its view is safe from any thread.
class PluginHost {
 public:
  /// Without `state` the plugin is told that there is none.
  PluginHost(std::string plugin, std::shared_ptr<Log> log, std::shared_ptr<store::PluginStateStore> state);
  /// Waits for threads of the plugin that are in a function of the host.
  ~PluginHost();
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  /// Like the sinks, on pages that nobody can write, and for ever.
  const topolet_host* view() const { return kept_.host; }
  const Sinks& sinks() const { return *kept_.sinks; }

  Log& log() const { return *log_; }

  /// True once the host has abandoned the running call.
  std::atomic<bool>& call_abandoned() { return call_abandoned_; }

  /// Returns the ids of the capabilities that the plugin has asked for and was given. Any thread.
  std::vector<std::string> given_capabilities() const TOPOLET_EXCLUDES(given_mutex_);

  /// The plugin wants to be called for a tick. Any thread.
  bool wants_tick() const { return wants_tick_; }
  /// Sets that, as a record of an earlier run has it.
  void set_wants_tick(bool wants) { wants_tick_ = wants; }
  /// A tick begins. True if the plugin wanted it; from now on it may want another.
  bool begin_tick();
  /// Called, on any thread, when the plugin begins to want a tick: with the time until that may begin.
  using Wake = std::function<void(std::chrono::milliseconds until)>;
  void wake_by(Wake wake) TOPOLET_EXCLUDES(wake_mutex_);

  /// Logs that a function of the plugin which cannot fail threw.
  void log_thrown(const char* function, const std::string& thrown) const;

  /// As long as one lives, the plugin may write its state, on this thread only.
  class StateWriteScope {
   public:
    explicit StateWriteScope(PluginHost& host);
    ~StateWriteScope();
    StateWriteScope(const StateWriteScope&) = delete;
    StateWriteScope& operator=(const StateWriteScope&) = delete;

   private:
    const PluginHost* outer_;
  };

 private:
  static const HostFunctions& functions();
  static const void* get_capability(const topolet_host* host, topolet_str id);
  static const void* capability_of(const HostLink& link, topolet_str id);
  static void write_log(const topolet_host* host, std::int32_t level, topolet_str message);
  static std::int32_t get_state(const topolet_host* host, topolet_str key, void* buffer, std::size_t capacity,
                                std::size_t* size);
  static std::int32_t next_state(const topolet_host* host, topolet_str after, void* buffer, std::size_t capacity,
                                 std::size_t* size);
  static std::int32_t set_state(const topolet_host* host, topolet_str key, topolet_str value);
  static std::int32_t remove_state(const topolet_host* host, topolet_str key);
  static std::int32_t tick_soon(const topolet_host* host);
  bool is_call_abandoned() const;
  std::int32_t check_may_write() const;
  Status check_key_limit(const std::string& key) const;
  /// Copies what `read` returns, a value or a key of the state, into the plugin's buffer; returns a topolet_status.
  /// Logs a failed read.
  template <class Read>
  std::int32_t copy_to_plugin(Read read, void* buffer, std::size_t capacity, std::size_t* size);
  /// TOPOLET_FAILED for what is more than a plugin may read in a decision. Logs the first time.
  std::int32_t check_read_limit(bool is_within);
  /// As a topolet_status. Logs a failed write.
  std::int32_t status_of_write(const Status& written) const;

  std::string plugin_;
  std::shared_ptr<Log> log_;
  mutable LogRateLimiter log_limiter_;
  std::shared_ptr<store::PluginStateStore> state_;
  std::atomic<bool> call_abandoned_ = false;
  std::atomic<bool> told_of_read_limit_ = false;
  std::atomic<bool> wants_tick_ = false;
  Mutex wake_mutex_;
  Wake wake_ TOPOLET_GUARDED_BY(wake_mutex_);
  std::optional<std::chrono::steady_clock::time_point> last_tick_ TOPOLET_GUARDED_BY(wake_mutex_);
  mutable Mutex given_mutex_;
  std::set<std::string> given_ TOPOLET_GUARDED_BY(given_mutex_);
  KeptByPlugin kept_;
};

}  // namespace topolet::plugin
