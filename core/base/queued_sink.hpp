// Keeps those who log from waiting for those who read.
#pragma once

#include <spdlog/sinks/sink.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

namespace topolet {

/// A bounded queue in front of another sink, served by a thread of its own. log() never waits for that sink: when the
/// queue is full, its older half is dropped, and a line in its place says how many lines were lost. A line for which
/// the sink throws is counted as lost, too.
///
/// spdlog::async_logger is not used because it bounds its queue by lines rather than bytes, allocates all of it at the
/// start, and joins its thread at the end, which takes as long as the reader pleases.
///
/// May be used from any thread, except that set_pattern() and set_formatter() must come before the first line.
class QueuedSink final : public spdlog::sinks::sink {
 public:
  /// The size of the lines that may wait in memory: about 8,000 of usual length.
  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;
  static constexpr std::chrono::seconds kLongestFlush{2};

  /// From the first line on, only the queue's thread uses `target`. Throws std::system_error if no thread can be
  /// started.
  explicit QueuedSink(std::shared_ptr<spdlog::sinks::sink> target);
  /// Flushes. If the thread is still stuck in the target after that, it is left behind, as nothing can interrupt it.
  ~QueuedSink() override;
  QueuedSink(const QueuedSink&) = delete;
  QueuedSink& operator=(const QueuedSink&) = delete;

  void log(const spdlog::details::log_msg& line) override;
  /// Waits until all that was logged before is written, but no longer than kLongestFlush.
  void flush() override;
  void set_pattern(const std::string& pattern) override;
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override;

 private:
  class Queue;

  std::shared_ptr<spdlog::sinks::sink> target_;
  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

}  // namespace topolet
