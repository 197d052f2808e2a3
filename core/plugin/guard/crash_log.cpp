#include "core/plugin/guard/crash_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "core/plugin/guard/crash_mark.hpp"
#include "core/plugin/guard/strikes.hpp"

namespace topolet::plugin {
namespace {

constexpr int kOnlyThis = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
/// Far more than all crashes that count.
constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::int64_t kWindowMs = std::chrono::milliseconds(kStrikeWindow).count();

struct Line {
  Crash crash;
  bool is_new = false;
};

std::optional<Line> read_line(const std::string& text) {
  Line line;
  line.is_new = text.rfind("! ", 0) == 0;
  std::istringstream words(line.is_new ? text.substr(2) : text);
  std::string rest;
  if (!(words >> line.crash.at_ms >> line.crash.plugin >> line.crash.signal >> line.crash.call)) return std::nullopt;
  if (words >> rest) return std::nullopt;
  return line;
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  while (text.size() < kMostBytes &&
         (count = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::vector<Crash> crashes_of(const std::vector<Crash>& crashes, const std::string& plugin) {
  std::vector<Crash> own;
  std::copy_if(crashes.begin(), crashes.end(), std::back_inserter(own),
               [&](const Crash& crash) { return crash.plugin == plugin; });
  return own;
}

std::chrono::milliseconds time_of(const Crash& crash) { return std::chrono::milliseconds(crash.at_ms); }

/// Returns the number of crashes within the window that ends with `last`, itself included.
std::size_t count_until(const std::vector<Crash>& crashes, const Crash& last) {
  const auto counts = [&](const Crash& crash) {
    return crash.plugin == last.plugin && crash.at_ms <= last.at_ms && last.at_ms - crash.at_ms <= kWindowMs;
  };
  // It may be too old to be remembered.
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::count_if(crashes.begin(), crashes.end(), counts)));
}

std::vector<Crash> still_relevant(const std::vector<Crash>& crashes, std::int64_t now_ms) {
  std::vector<Crash> kept;
  std::copy_if(crashes.begin(), crashes.end(), std::back_inserter(kept), [&](const Crash& crash) {
    return now_ms - crash.at_ms <= kWindowMs || has_struck_out(crashes_of(crashes, crash.plugin), time_of);
  });
  return kept;
}

/// Something is there that stays what it is, unlike a file system that cannot be written to for now.
bool is_no_file(int error) { return error == ELOOP || error == EISDIR; }

/// So that crashes can be noted while the disk is full: without, a plugin that crashes would never be quarantined. A
/// file system that cannot reserve does without.
void reserve_space(int fd) {
  constexpr off_t kBytes = 4096;  // of some 60 crashes
  static_cast<void>(::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, kBytes) == 0);
}

Error cannot_open(const std::filesystem::path& file, int error) {
  return {
      Code::kFailedPrecondition,
      fmt::format("cannot open {}, the record of plugin crashes: {}; make daemon.state-dir writable, and the file a "
                  "regular one",
                  file.string(), std::strerror(error))};
}

/// Such as a FIFO, of which the crashes could not be read again.
Status check_regular(const std::filesystem::path& file, const UniqueFd& fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode)) return {};
  return Error{Code::kFailedPrecondition,
               fmt::format("{}, the record of plugin crashes, is not a regular file; move it away", file.string())};
}

}  // namespace

Result<std::unique_ptr<CrashLog>> CrashLog::open(const std::filesystem::path& file, std::int64_t now_ms,
                                                 bool may_make_directory) {
  if (may_make_directory) {
    std::error_code ignored;  // opening tells what is wrong
    std::filesystem::create_directories(file.parent_path().parent_path(), ignored);
    ::mkdir(file.parent_path().c_str(), 0700);
  }
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | kOnlyThis, 0600));
  std::string text;
  std::string not_kept;
  if (fd) {
    if (Status regular = check_regular(file, fd); !regular) return regular.error();
    reserve_space(fd.get());
    text = read_all(fd.get());
  } else if (const int error = errno; !is_no_file(error)) {
    // A crash must not find the descriptor of something else.
    fd = UniqueFd(::memfd_create("plugin-crashes", MFD_CLOEXEC));
    if (fd) ::fcntl(fd.get(), F_SETFL, O_APPEND);
    not_kept = fmt::format(
        "crashes of plugins are not remembered over a restart: cannot open {}: {}; make daemon.state-dir writable, and "
        "restart topoletd",
        file.string(), std::strerror(error));
    if (const UniqueFd old{::open(file.c_str(), O_RDONLY | kOnlyThis)}) text = read_all(old.get());
  }
  if (!fd) return cannot_open(file, errno);
  std::unique_ptr<CrashLog> log(new CrashLog(std::move(fd)));
  log->not_kept_ = not_kept;
  log->remember(text, now_ms);
  return log;
}

Result<std::unique_ptr<CrashLog>> CrashLog::read(const std::filesystem::path& file, std::int64_t now_ms) {
  // To write as well, as open() does: a directory can be opened to be read.
  UniqueFd fd(::open(file.c_str(), O_RDWR | kOnlyThis));
  if (const int error = errno; !fd && is_no_file(error)) return cannot_open(file, error);
  if (!fd) fd = UniqueFd(::open(file.c_str(), O_RDONLY | kOnlyThis));
  if (fd) {
    if (Status regular = check_regular(file, fd); !regular) return regular.error();
  }
  std::unique_ptr<CrashLog> log(new CrashLog({}));
  if (fd) log->remember(read_all(fd.get()), now_ms);
  return log;
}

void CrashLog::remember(const std::string& text, std::int64_t now_ms) {
  std::vector<Crash> all;
  std::istringstream lines(text);
  for (std::string words; std::getline(lines, words);) {
    const auto line = read_line(words);
    if (!line) continue;
    all.push_back(line->crash);
    if (line->is_new) new_crashes_.push_back(line->crash);
  }
  std::stable_sort(all.begin(), all.end(), [](const Crash& a, const Crash& b) { return a.at_ms < b.at_ms; });
  MutexLock lock(mutex_);
  crashes_ = still_relevant(all, now_ms);
}

Status CrashLog::clear_new_marks() const {
  MutexLock lock(mutex_);
  return write();
}

std::vector<std::string> CrashLog::describe_new_crashes() const {
  MutexLock lock(mutex_);
  std::vector<std::string> lines;
  for (const Crash& crash : new_crashes_) {
    const std::size_t count = count_until(crashes_, crash);
    lines.push_back(fmt::format("topoletd was ended by {} in {} of plugin {}: crash {} in {} minutes; {}",
                                describe_crash(crash.signal.c_str()), describe_call(crash.call), crash.plugin, count,
                                kStrikeWindow.count(),
                                count < kStrikes ? fmt::format("the plugin is quarantined after {}", kStrikes)
                                                 : std::string("the plugin is quarantined")));
  }
  return lines;
}

std::string CrashLog::why_quarantined(const std::string& plugin) const {
  MutexLock lock(mutex_);
  const std::vector<Crash> own = crashes_of(crashes_, plugin);
  if (!has_struck_out(own, time_of)) return {};
  return fmt::format("crashed topoletd {} times in {} minutes, last: {} in {}", kStrikes, kStrikeWindow.count(),
                     describe_crash(own.back().signal.c_str()), describe_call(own.back().call));
}

bool CrashLog::crashed_at_start(const std::string& plugin) const {
  MutexLock lock(mutex_);
  const std::vector<Crash> own = crashes_of(crashes_, plugin);
  return std::any_of(own.begin(), own.end(), [](const Crash& crash) {
    // A thread of its own may well be one that create() starts.
    return crash.call == "load" || crash.call == "create" || crash.call == kOwnThread;
  });
}

Status CrashLog::remove_crashes_of(const std::string& plugin) {
  MutexLock lock(mutex_);
  const auto is_its = [&](const Crash& crash) { return crash.plugin == plugin; };
  const auto end = std::remove_if(crashes_.begin(), crashes_.end(), is_its);
  if (end == crashes_.end()) return {};
  crashes_.erase(end, crashes_.end());
  return write();
}

// In place and not by renaming: the crash handler holds this descriptor.
Status CrashLog::write() const {
  std::string text;
  for (const Crash& crash : crashes_) {
    text += fmt::format("{} {} {} {}\n", crash.at_ms, crash.plugin, crash.signal, crash.call);
  }
  const bool is_empty = ::ftruncate(fd(), 0) == 0;
  const int error = errno;
  reserve_space(fd());
  errno = error;
  if (is_empty && ::write(fd(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return Error{Code::kUnavailable,
               fmt::format("cannot write the record of plugin crashes: {}; check the file system of "
                           "daemon.state-dir",
                           std::strerror(errno))};
}

}  // namespace topolet::plugin
