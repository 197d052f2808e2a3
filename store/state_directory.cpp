#include "store/state_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string>

namespace topolet::store {
namespace {

namespace fs = std::filesystem;

/// SQLite's own names for the write-ahead log and its index.
constexpr std::array<const char*, 2> kCompanions{"-wal", "-shm"};

fs::path with_suffix(const fs::path& path, const std::string& suffix) { return path.string() + suffix; }

/// Follows no link: one that leads nowhere is in the way as well.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

Error cannot_use(const fs::path& path, int error) {
  return {error == EACCES || error == EPERM || error == EROFS ? Code::kPermissionDenied : Code::kUnavailable,
          fmt::format("cannot use '{}': {}; state-dir must be a directory that topoletd can write to", path.string(),
                      std::strerror(error))};
}

Status make_directory(const fs::path& directory) {
  std::error_code ignored;  // mkdir below tells what is wrong
  fs::create_directories(directory.parent_path(), ignored);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return cannot_use(directory, errno);
  return {};
}

/// O_NOFOLLOW: a link planted in the directory must not lead a privileged daemon elsewhere.
Result<UniqueFd> open_private(const fs::path& path, int flags) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (!file || ::fchmod(file.get(), 0600) != 0) return cannot_use(path, errno);
  return file;
}

std::string holder_of(const UniqueFd& lock) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(lock.get(), text.data(), text.size(), 0);
  return size > 0 ? fmt::format(" (process {})", std::string_view(text.data(), static_cast<std::size_t>(size))) : "";
}

Status acquire_lock(const UniqueFd& lock, const fs::path& path) {
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return cannot_use(path, errno);
    return Error{Code::kFailedPrecondition,
                 fmt::format("'{}' is locked: another topoletd{} runs with this state directory; stop it, or set "
                             "another state-dir",
                             path.string(), holder_of(lock))};
  }
  // For the message above only: a full disk may leave it out.
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock.get(), 0) == 0) static_cast<void>(::pwrite(lock.get(), pid.data(), pid.size(), 0) == 0);
  return {};
}

Status rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return Error{Code::kUnavailable, fmt::format("cannot set the damaged '{}' aside as '{}': {}; move it away",
                                               from.string(), to.string(), std::strerror(errno))};
}

}  // namespace

Result<StateDirectory> StateDirectory::claim(const fs::path& given) {
  const fs::path directory = given.has_filename() ? given : given.parent_path();
  if (Status made = make_directory(directory); !made) return made.error();
  const fs::path path = directory / "state.db.lock";
  auto lock = open_private(path, O_CREAT);
  if (!lock) return lock.error();
  if (Status taken = acquire_lock(*lock, path); !taken) return taken.error();
  auto generation = open_private(directory / "state.db.generation", O_CREAT);
  if (!generation) return generation.error();
  return StateDirectory(directory, *std::move(lock), *std::move(generation));
}

void StateDirectory::write_generation_file(const std::string& boot_id, std::uint64_t generation) const {
  // Of one length for one boot, so that a newer one covers an older one whole.
  const std::string text = fmt::format("{:020} {}\n", generation, boot_id);
  static_cast<void>(::pwrite(generation_.get(), text.data(), text.size(), 0) == 0);
}

std::optional<std::uint64_t> StateDirectory::read_generation_file(const std::string& boot_id) const {
  std::array<char, 128> text{};
  const ssize_t size = ::pread(generation_.get(), text.data(), text.size() - 1, 0);
  if (size <= 0) return std::nullopt;
  std::istringstream words(std::string(text.data(), static_cast<std::size_t>(size)));
  std::int64_t generation = 0;
  std::string boot;
  words >> generation >> boot;
  if (!words || boot != boot_id || generation < 0) return std::nullopt;
  return static_cast<std::uint64_t>(generation);
}

Status StateDirectory::prepare_database() const {
  if (auto file = open_private(database(), O_CREAT); !file) return file.error();
  for (const char* companion : kCompanions) {
    const fs::path path = with_suffix(database(), companion);
    if (!is_there(path)) continue;
    if (auto file = open_private(path, 0); !file) return file.error();
  }
  return {};
}

Result<fs::path> StateDirectory::set_database_aside(std::int64_t now_ms) const {
  fs::path aside;
  do {
    aside = with_suffix(database(), fmt::format(".damaged-{}", now_ms++));
  } while (is_there(aside));
  // The database goes first: were the log to go first and this end here, an older state would pass for the newest.
  if (Status renamed = rename_file(database(), aside); !renamed) return renamed.error();
  for (const char* companion : kCompanions) {
    const fs::path path = with_suffix(database(), companion);
    if (!is_there(path)) continue;
    if (Status renamed = rename_file(path, with_suffix(aside, companion)); !renamed) return renamed.error();
  }
  return aside;
}

}  // namespace topolet::store
