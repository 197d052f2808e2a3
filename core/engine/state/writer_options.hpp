// The options of the Writer. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "core/base/clock.hpp"

namespace topolet::engine {

/// On whose thread the store is written.
enum class WriterThread : std::uint8_t {
  kOwn,
  kLoop,  ///< for a simulated loop: written on the loop's thread; `done` of Writer::submit() still runs later
};

struct WriterOptions {
  WriterThread thread = WriterThread::kOwn;
  std::chrono::milliseconds patience{50};
  std::chrono::milliseconds retry{1000};        ///< after a failure
  std::chrono::milliseconds longest_end{5000};  ///< how long Writer::stop() waits for the store
  /// With WriterThread::kLoop, returns the time of the next transaction, from when it is wanted until it is written.
  /// Later submissions are written in one transaction after it. Without it each submission is written at once.
  std::function<std::chrono::milliseconds()> transaction_time = {};
  Clock retention_clock = {};  ///< of the thread that writes
};

}  // namespace topolet::engine
