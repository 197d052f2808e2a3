// The crashes that plugins caused, kept over restarts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet::plugin {

struct Crash {
  std::int64_t at_ms = 0;
  std::string plugin;
  std::string signal;  ///< "SIGSEGV", or another word that describe_crash() knows
  std::string call;    ///< "score", "create"…

  friend bool operator==(const Crash&, const Crash&) = default;
};

/// A small file: one line a crash. Lines that the crash handler appended since the last start begin with "! ". Three
/// crashes of a plugin in ten minutes put it into quarantine, and that is remembered until the plugin is reset; others
/// are forgotten after ten minutes. Safe from any thread.
class CrashLog {
 public:
  /// Opens the file or makes it (0600), and its directory (0700) if that is absent and `may_make_directory`. Lines that
  /// cannot be read are dropped. While the file cannot be made or written, crashes are kept in memory only; see
  /// why_not_kept().
  static Result<std::unique_ptr<CrashLog>> open(const std::filesystem::path& file, std::int64_t now_ms,
                                                bool may_make_directory = true);

  /// Returns the same as open() would, without making or changing anything; it can only be asked.
  static Result<std::unique_ptr<CrashLog>> read(const std::filesystem::path& file, std::int64_t now_ms);

  /// Returns why new crashes are not kept over a restart; empty if they are.
  const std::string& why_not_kept() const { return not_kept_; }

  /// Returns the file to which the crash handler appends.
  int fd() const { return fd_.get(); }

  /// Rewrites the file without the marks of new crashes and without crashes that no longer matter. Only one topoletd
  /// may use the directory.
  Status clear_new_marks() const TOPOLET_EXCLUDES(mutex_);

  /// Returns the crashes since the marks were last cleared.
  const std::vector<Crash>& new_crashes() const { return new_crashes_; }
  /// The same for people, one line each: how many crashes of the plugin there were, and what follows.
  std::vector<std::string> describe_new_crashes() const TOPOLET_EXCLUDES(mutex_);

  /// Returns why the plugin is not to be asked; empty if it may be.
  std::string why_quarantined(const std::string& plugin) const TOPOLET_EXCLUDES(mutex_);
  /// True if one of the remembered crashes was, or may have been caused, while the plugin was loaded or created: doing
  /// that again would crash again.
  bool crashed_at_start(const std::string& plugin) const TOPOLET_EXCLUDES(mutex_);

  Status remove_crashes_of(const std::string& plugin) TOPOLET_EXCLUDES(mutex_);

 private:
  explicit CrashLog(UniqueFd fd) : fd_(std::move(fd)) {}
  void remember(const std::string& text, std::int64_t now_ms) TOPOLET_EXCLUDES(mutex_);
  Status write() const TOPOLET_REQUIRES(mutex_);

  const UniqueFd fd_;
  std::string not_kept_;
  std::vector<Crash> new_crashes_;
  mutable Mutex mutex_;
  std::vector<Crash> crashes_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::plugin
