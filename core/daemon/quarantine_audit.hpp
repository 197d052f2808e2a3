// Quarantines on their way into the audit.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.hpp"

namespace topolet {

/// Plugins may be put into quarantine before there is an audit to write to, and a call that was given up on may come
/// back after it is closed: what comes early waits, what comes late is dropped. Safe from any thread.
class QuarantineAudit {
 public:
  using Write = std::function<void(const std::string& event, const std::string& reason)>;

  /// An empty `why`: the quarantine ended.
  void note(const std::string& plugin, const std::string& why) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Remark remark = why.empty() ? Remark{"quarantine-ended", "plugin " + plugin + " is asked again"}
                                : Remark{"quarantined", "plugin " + plugin + " is not asked any more: " + why};
    if (write_) {
      write_(remark.event, remark.reason);
    } else if (!closed_) {
      early_.push_back(std::move(remark));
    }
  }

  /// `write` must not call back.
  void open(Write write) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (const Remark& remark : std::exchange(early_, {})) write(remark.event, remark.reason);
    write_ = std::move(write);
  }

  void close() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    write_ = nullptr;
    closed_ = true;
  }

 private:
  struct Remark {
    std::string event;
    std::string reason;
  };

  Mutex mutex_;
  Write write_ TOPOLET_GUARDED_BY(mutex_);
  bool closed_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::vector<Remark> early_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet
