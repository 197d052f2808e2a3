#pragma once

#include <memory>

#include "core/base/log_fwd.hpp"

namespace topolet {

/// The log of a daemon that must go on even if nobody reads what it says: lines wait in a bounded queue (see
/// QueuedSink), whose thread writes them to the journal if standard error leads there, each with its priority and the
/// journal's own time, and otherwise to standard error, each with time and level. Each record is one line, see
/// escaped().
///
/// Call Log::flush() before _exit(), or the last lines may be missing. Giving up the last reference flushes by itself.
/// Either waits no longer than QueuedSink::kLongestFlush.
std::shared_ptr<Log> make_daemon_log();

}  // namespace topolet
