// Events of no container on their way into the audit.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.hpp"
#include "core/engine/state/audit_event.hpp"

namespace topolet::daemon {

/// Plugins may be put into quarantine before there is an audit to write to, and an abandoned call or a check of the
/// database may end after it is closed: early events wait, late ones are dropped. Safe from any thread.
class AuditOutlet {
 public:
  using Write = std::function<void(engine::AuditEvent event, const std::string& reason)>;

  /// An empty `why`: the quarantine ended.
  void note_quarantine(const std::string& plugin, const std::string& why) TOPOLET_EXCLUDES(mutex_) {
    if (why.empty()) {
      note(engine::AuditEvent::kQuarantineEnded, "plugin " + plugin + " is asked again");
    } else {
      note(engine::AuditEvent::kQuarantined, "plugin " + plugin + " is not asked any more: " + why);
    }
  }

  void note(engine::AuditEvent event, const std::string& reason) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (write_) {
      write_(event, reason);
    } else if (!closed_) {
      before_open_.push_back({event, reason});
    }
  }

  /// `write` must not call back.
  void open(Write write) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (const Entry& entry : std::exchange(before_open_, {})) write(entry.event, entry.reason);
    write_ = std::move(write);
  }

  void close() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    write_ = nullptr;
    closed_ = true;
  }

 private:
  struct Entry {
    engine::AuditEvent event;
    std::string reason;
  };

  Mutex mutex_;
  Write write_ TOPOLET_GUARDED_BY(mutex_);
  bool closed_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::vector<Entry> before_open_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::daemon
