#include <fmt/format.h>
#include <sys/statvfs.h>

#include <optional>
#include <string>
#include <system_error>

#include "core/base/clock.hpp"
#include "core/plugin/guard/crash_log.hpp"
#include "core/preflight/findings.hpp"
#include "store/inspect.hpp"

namespace topolet::preflight {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWithoutDatabase = "topoletd would run without the state database until it can write it";

/// That the file system is full, on which the directory is or will be.
std::optional<std::string> describe_full_disk(const fs::path& directory) {
  // Less than a new database needs.
  constexpr std::uintmax_t kLeast = 1 << 20;
  fs::path there = directory;
  std::error_code ignored;
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  struct statvfs disk {};
  if (::statvfs(there.c_str(), &disk) != 0) return std::nullopt;
  const bool has_no_inodes = disk.f_files > 0 && disk.f_favail == 0;
  if (disk.f_bavail * disk.f_frsize >= kLeast && !has_no_inodes) return std::nullopt;
  return fmt::format("the file system of {} is full; free space on it; {}", there.string(), kWithoutDatabase);
}

}  // namespace

void check_state(Report& report) {
  const std::string option = "daemon.state-dir";
  const std::filesystem::path& directory = report.options().daemon.state_dir;
  if (report.is_mistaken(option)) return;
  const auto usable = store::inspect_state_directory(directory);
  if (!usable && store::is_misconfigured(usable.error())) return report.mistake(option, usable.error().message);
  const auto crashes = plugin::CrashLog::read(directory / "plugin-crashes", Clock().wall().count());
  if (!crashes) return report.mistake(option, crashes.error().message);
  if (usable) {
    report.note_use(option, *usable);
    if (const auto full = describe_full_disk(directory)) report.warning(option, *full);
    return;
  }
  const bool is_set_aside = usable.error().code == Code::kDataLoss || usable.error().code == store::kTooOld;
  report.warning(option,
                 fmt::format("{}; {}", usable.error().message,
                             is_set_aside ? "topoletd would move it away and create a new one" : kWithoutDatabase));
}

}  // namespace topolet::preflight
