// The host as plugins see it: its log and their state.
#pragma once

#include <topolet/abi.h>
#include <topolet/log.h>
#include <topolet/state.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/plugin/guard/lent_pages.hpp"
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
inline constexpr std::size_t kMaxStateKeys = 4096;

/// The host as one instance sees it. Must outlive the instance. Its view is safe from any thread.
class PluginHost {
 public:
  /// Without `state` the plugin is told that there is none.
  PluginHost(std::string plugin, std::shared_ptr<Log> log, std::shared_ptr<store::PluginStateStore> state);
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  /// On pages that nobody can write.
  const topolet_host* view() const { return &shown_->host; }

  /// True once the host has abandoned the running call.
  std::atomic<bool>& call_abandoned() { return call_abandoned_; }

  /// As long as one lives, the plugin may write its state.
  class StateWriteScope {
   public:
    explicit StateWriteScope(PluginHost& host) : host_(host) { host_.may_write_ = true; }
    ~StateWriteScope() { host_.may_write_ = false; }
    StateWriteScope(const StateWriteScope&) = delete;
    StateWriteScope& operator=(const StateWriteScope&) = delete;

   private:
    PluginHost& host_;
  };

 private:
  static const void* get_capability(const topolet_host* host, topolet_str id);
  static void write_log(const topolet_host* host, std::int32_t level, topolet_str message);
  static std::int32_t get_state(const topolet_host* host, topolet_str key, void* buffer, std::size_t capacity,
                                std::size_t* size);
  static std::int32_t next_state(const topolet_host* host, topolet_str after, void* buffer, std::size_t capacity,
                                 std::size_t* size);
  static std::int32_t set_state(const topolet_host* host, topolet_str key, topolet_str value);
  static std::int32_t remove_state(const topolet_host* host, topolet_str key);
  std::int32_t check_may_write() const;
  Status check_key_limit(const std::string& key) const;
  /// Copies a value or a key of the state into the plugin's buffer; returns a topolet_status. Logs a failed read.
  std::int32_t copy_to_plugin(const Result<std::optional<std::string>>& found, void* buffer, std::size_t capacity,
                              std::size_t* size) const;
  /// As a topolet_status. Logs a failed write.
  std::int32_t status_of_write(const Status& written) const;

  std::string plugin_;
  std::shared_ptr<Log> log_;
  mutable LogRateLimiter log_limiter_;
  std::shared_ptr<store::PluginStateStore> state_;
  std::atomic<bool> call_abandoned_ = false;
  std::atomic<bool> may_write_ = false;
  struct Shown {
    topolet_host host;
    topolet_log log;
    topolet_state state;
  };
  LentPages pages_{sizeof(Shown)};
  const Shown* shown_;
};

}  // namespace topolet::plugin
