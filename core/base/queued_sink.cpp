#include "core/base/queued_sink.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <spdlog/details/log_msg_buffer.h>
#include <spdlog/formatter.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include "core/base/mutex.hpp"

namespace topolet {
namespace {

using Line = spdlog::details::log_msg_buffer;

std::size_t bytes_of(const Line& line) { return sizeof(Line) + line.logger_name.size() + line.payload.size(); }

struct NextLine {
  Line line;
  std::uint64_t lost_before;
};

void report_lost(spdlog::sinks::sink& target, spdlog::string_view_t logger, std::uint64_t lost) {
  const std::string text = fmt::format(
      "{} log line{} lost because the reader of the log did not take {} in time; see what holds up the reader, or log "
      "less with daemon.log-level",
      lost, lost == 1 ? " was" : "s were", lost == 1 ? "it" : "them");
  target.log({logger, spdlog::level::warn, text});
}

/// The number of lines that are still lost and not told of.
std::uint64_t write(spdlog::sinks::sink& target, const NextLine& next) {
  std::uint64_t lost = next.lost_before;
  try {
    if (lost > 0) report_lost(target, next.line.logger_name, lost);
    lost = 0;
    target.log(next.line);
    return lost;
  } catch (const std::exception&) {
    return lost + 1;
  }
}

}  // namespace

class QueuedSink::Queue {
 public:
  void put(const spdlog::details::log_msg& message) {
    Line line(message);
    const std::size_t bytes = bytes_of(line);
    {
      const MutexLock lock(mutex_);
      ++count_;
      if (bytes > kMaxBytes) {
        ++lost_;
        return;
      }
      if (bytes_ + bytes > kMaxBytes) drop_older_half(bytes);
      bytes_ += bytes;
      lines_.push_back(std::move(line));
    }
    changed_.notify_all();
  }

  /// Waits for a line; nothing once the queue is closed.
  std::optional<NextLine> wait_for_line() {
    const MutexLock lock(mutex_);
    while (lines_.empty() && !closed_) changed_.wait(mutex_);
    if (closed_) return std::nullopt;
    NextLine next{pop(), std::exchange(lost_, 0)};
    is_writing_ = true;
    return next;
  }

  /// The line that was taken is written, or lost.
  void finish(std::uint64_t lost) {
    const MutexLock lock(mutex_);
    is_writing_ = false;
    lost_ += lost;
    changed_.notify_all();
  }

  /// False if the lines that were put before are not all written, or lost, at `deadline`.
  bool wait_until_written(std::chrono::steady_clock::time_point deadline) {
    const MutexLock lock(mutex_);
    const std::uint64_t wanted = count_;
    while (count_ - lines_.size() - (is_writing_ ? 1 : 0) < wanted) {
      if (!changed_.wait_until(mutex_, deadline)) return false;
    }
    return true;
  }

  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  /// Half of the queue at once: else each line that is written while too many come would have a loss to tell of.
  void drop_older_half(std::size_t bytes) TOPOLET_REQUIRES(mutex_) {
    while (!lines_.empty() && bytes_ + bytes > kMaxBytes / 2) {
      pop();
      ++lost_;
    }
  }

  Line pop() TOPOLET_REQUIRES(mutex_) {
    Line line = std::move(lines_.front());
    lines_.pop_front();
    bytes_ -= bytes_of(line);
    return line;
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<Line> lines_ TOPOLET_GUARDED_BY(mutex_);
  std::size_t bytes_ TOPOLET_GUARDED_BY(mutex_) = 0;
  std::uint64_t count_ TOPOLET_GUARDED_BY(mutex_) = 0;  ///< of all lines ever put
  std::uint64_t lost_ TOPOLET_GUARDED_BY(mutex_) = 0;   ///< and not told of
  bool is_writing_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool closed_ TOPOLET_GUARDED_BY(mutex_) = false;
};

QueuedSink::QueuedSink(std::shared_ptr<spdlog::sinks::sink> target)
    : target_(std::move(target)),
      queue_(std::make_shared<Queue>()),
      // Shares what it uses, as it may be left behind.
      thread_([queue = queue_, target = target_] {
        while (const auto next = queue->wait_for_line()) queue->finish(write(*target, *next));
      }) {
  pthread_setname_np(thread_.native_handle(), "topolet-log");
}

QueuedSink::~QueuedSink() {
  const bool is_idle = queue_->wait_until_written(std::chrono::steady_clock::now() + kLongestFlush);
  queue_->close();
  if (is_idle) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void QueuedSink::log(const spdlog::details::log_msg& line) { queue_->put(line); }

void QueuedSink::flush() {
  static_cast<void>(queue_->wait_until_written(std::chrono::steady_clock::now() + kLongestFlush));
}

void QueuedSink::set_pattern(const std::string& pattern) { target_->set_pattern(pattern); }

void QueuedSink::set_formatter(std::unique_ptr<spdlog::formatter> formatter) {
  target_->set_formatter(std::move(formatter));
}

}  // namespace topolet
