#include "core/base/daemon_log.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/sinks/systemd_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/escape.hpp"
#include "core/base/log.hpp"
#include "core/base/queued_sink.hpp"

namespace topolet {
namespace {

/// The socket to which libsystemd sends lines; without such a file it drops them and reports no error.
constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

/// As systemd.exec(5) says of JOURNAL_STREAM: it may be inherited by a process whose standard error leads elsewhere.
bool stderr_leads_to_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat file {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &file) != 0) return false;
  return std::string_view(stream) == fmt::format("{}:{}", file.st_dev, file.st_ino) &&
         ::access(kJournalSocket, W_OK) == 0;
}

/// spdlog's own holds the lock of the stream `stderr` while nobody reads, and exit() waits for that lock.
class StderrSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  void sink_it_(const spdlog::details::log_msg& line) override {
    spdlog::memory_buf_t text;
    formatter_->format(line, text);
    for (std::string_view rest(text.data(), text.size()); !rest.empty();) {
      const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
      if (written >= 0) {
        rest.remove_prefix(static_cast<std::size_t>(written));
      } else if (errno == EAGAIN) {
        pollfd until{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
        static_cast<void>(::poll(&until, 1, -1));
      } else if (errno != EINTR) {
        spdlog::throw_spdlog_ex("cannot write to standard error", errno);
      }
    }
  }
  void flush_() override {}
};

/// Makes one line of each record, whatever names it tells of; see escaped().
class EscapingSink final : public spdlog::sinks::sink {
 public:
  explicit EscapingSink(std::shared_ptr<spdlog::sinks::sink> target) : target_(std::move(target)) {}

  void log(const spdlog::details::log_msg& record) override {
    const std::string text = escaped({record.payload.data(), record.payload.size()});
    spdlog::details::log_msg line = record;
    line.payload = text;
    target_->log(line);
  }
  void flush() override { target_->flush(); }
  void set_pattern(const std::string& pattern) override { target_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    target_->set_formatter(std::move(formatter));
  }

 private:
  std::shared_ptr<spdlog::sinks::sink> target_;
};

/// Without locks of its own, as the queue's thread alone uses it.
std::shared_ptr<spdlog::sinks::sink> make_sink() {
  if (stderr_leads_to_journal()) return std::make_shared<spdlog::sinks::systemd_sink_st>("topoletd");
  auto sink = std::make_shared<StderrSink>();
  sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
  return sink;
}

}  // namespace

std::shared_ptr<Log> make_daemon_log() {
  return std::make_shared<Log>("topolet", std::make_shared<QueuedSink>(std::make_shared<EscapingSink>(make_sink())));
}

}  // namespace topolet
