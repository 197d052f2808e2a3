#include "store/state_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "core/base/file_access.hpp"
#include "core/base/file_lock.hpp"

namespace topolet::store {
namespace {

namespace fs = std::filesystem;

/// SQLite's own names for the write-ahead log and its index.
constexpr std::array<const char*, 2> kCompanions{"-wal", "-shm"};

constexpr const char* kDatabaseName = "state.db";
constexpr const char* kLockName = "state.db.lock";
constexpr const char* kGenerationName = "state.db.generation";

/// As has_filename() and parent_path() have it, "/a/b/" is in /a/b.
fs::path without_trailing_slash(const fs::path& given) { return given.has_filename() ? given : given.parent_path(); }

fs::path with_suffix(const fs::path& path, const std::string& suffix) { return path.string() + suffix; }

/// Follows no link: one that leads nowhere is in the way as well.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

fs::path mark_of(const fs::path& database) { return with_suffix(database, ".damaged"); }

/// Names a file as no other that exists at the same time.
std::optional<std::string> identity_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return fmt::format("{} {}", status.st_dev, status.st_ino);
}

/// FAILED_PRECONDITION for what does not pass by itself.
Code code_of_errno(int error) {
  if (error == ENOTDIR || error == EISDIR || error == ELOOP || error == ENXIO) return Code::kFailedPrecondition;
  return error == EACCES || error == EPERM || error == EROFS ? Code::kPermissionDenied : Code::kUnavailable;
}

Error cannot_use(const fs::path& path, int error) {
  return {code_of_errno(error),
          fmt::format("cannot use '{}': {}; state-dir must be a directory that topoletd can write to", path.string(),
                      std::strerror(error))};
}

/// Nothing was ever kept there, and waiting makes no directory: somebody has named the wrong one. A full disk passes.
Error cannot_make(const fs::path& directory, int error) {
  const bool may_pass = error == ENOSPC || error == EDQUOT || error == EIO || error == ENOMEM;
  return {may_pass ? Code::kUnavailable : Code::kFailedPrecondition,
          fmt::format("cannot create '{}': {}; state-dir must be a directory that topoletd can create and write to",
                      directory.string(), std::strerror(error))};
}

Status check_directory(const fs::path& directory, const struct stat& status) {
  if (!S_ISDIR(status.st_mode)) {
    return Error{Code::kFailedPrecondition,
                 fmt::format("'{}' is a file; state-dir must be a directory", directory.string())};
  }
  const Status checked = check_writers(directory, status);
  return checked ? checked : Error{Code::kFailedPrecondition, "state-dir " + checked.error().message};
}

Error is_gone(const fs::path& directory) {
  return {Code::kUnavailable, fmt::format("the directory '{0}' is gone; topoletd does not make it again while it runs: "
                                          "make it (mkdir -m 700 {0}), or restart topoletd",
                                          directory.string())};
}

Status find_directory(const fs::path& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) == 0) return check_directory(directory, status);
  return errno == ENOENT ? is_gone(directory) : cannot_use(directory, errno);
}

Status make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory.parent_path(), error);
  if (error) return cannot_make(directory, error.value());
  struct stat status {};
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    if (const int why = errno; ::stat(directory.c_str(), &status) != 0) return cannot_make(directory, why);
  }
  if (::stat(directory.c_str(), &status) != 0) return cannot_make(directory, errno);
  return check_directory(directory, status);
}

/// Refuses a file that others may have put there, or can see elsewhere.
Status check_file(const fs::path& path, const UniqueFd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return cannot_use(path, errno);
  const auto refused = [&path](const std::string& what) {
    return Error{Code::kFailedPrecondition, fmt::format("'{}' {}; move it away", path.string(), what)};
  };
  if (!S_ISREG(status.st_mode)) return refused("is not a regular file");
  if (status.st_nlink > 1) return refused(fmt::format("has {} names (hard links)", status.st_nlink));
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return refused(fmt::format("is owned by user {}, neither root nor the user topoletd runs as", status.st_uid));
  }
  return {};
}

/// O_NOFOLLOW: a link planted in the directory must not lead a privileged daemon elsewhere. O_NONBLOCK: nor a FIFO hold
/// it up.
Result<UniqueFd> open_checked(const fs::path& path, int flags) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600));
  if (!file) return cannot_use(path, errno);
  if (Status checked = check_file(path, file); !checked) return checked.error();
  return file;
}

Result<UniqueFd> open_private(const fs::path& path, int flags) {
  auto file = open_checked(path, flags);
  if (file && ::fchmod(file->get(), 0600) != 0) return cannot_use(path, errno);
  return file;
}

std::string holder_of(const UniqueFd& lock) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(lock.get(), text.data(), text.size(), 0);
  return size > 0 ? fmt::format(" (process {})", std::string_view(text.data(), static_cast<std::size_t>(size))) : "";
}

Status acquire_lock(const UniqueFd& lock, const fs::path& path) {
  if (const int error = lock_file(lock.get()); error != 0) {
    if (error != EWOULDBLOCK) return cannot_use(path, error);
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

/// The lock, also in a directory that cannot be written to.
Result<UniqueFd> open_lock(const fs::path& path) {
  auto lock = open_private(path, O_CREAT);
  if (lock || lock.error().code == Code::kFailedPrecondition) return lock;
  const UniqueFd readable(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!readable) return lock;
  const Status taken = acquire_lock(readable, path);
  if (!taken && taken.error().code == Code::kFailedPrecondition) return taken.error();
  return lock;
}

Status rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return Error{Code::kUnavailable, fmt::format("cannot set '{}' aside as '{}': {}; move it away", from.string(),
                                               to.string(), std::strerror(errno))};
}

}  // namespace

Result<StateDirectory::Use> StateDirectory::inspect(const fs::path& given) {
  const fs::path directory = without_trailing_slash(given);
  struct stat status {};
  const bool exists = ::stat(directory.c_str(), &status) == 0;
  if (exists) {
    if (Status checked = check_directory(directory, status); !checked) return checked.error();
  } else {
    fs::path at;
    if (const int error = cannot_create_in(directory, at); error != 0) return cannot_make(directory, error);
  }
  const fs::path database = directory / kDatabaseName;
  for (const fs::path& path : {directory / kLockName, directory / kGenerationName, database}) {
    if (!is_there(path)) {
      fs::path at;
      if (const int error = cannot_create_in(directory, at); error != 0) return cannot_use(path, error);
      continue;
    }
    const auto file = open_checked(path, 0);
    if (!file) return file.error();
    if (path.filename() == kLockName && is_locked(file->get())) return Use::kLocked;
  }
  for (const char* companion : kCompanions) {
    const fs::path path = with_suffix(database, companion);
    if (!is_there(path)) continue;
    if (const auto file = open_checked(path, 0); !file) return file.error();
  }
  return is_there(database) ? Use::kHasDatabase : Use::kNew;
}

Result<StateDirectory> StateDirectory::claim(const fs::path& given, IfAbsent if_absent) {
  const fs::path directory = without_trailing_slash(given);
  const Status there = if_absent == IfAbsent::kMake ? make_directory(directory) : find_directory(directory);
  if (!there) return there.error();
  const fs::path path = directory / kLockName;
  auto lock = open_lock(path);
  if (!lock) return lock.error();
  if (Status taken = acquire_lock(*lock, path); !taken) return taken.error();
  auto generation = open_private(directory / kGenerationName, O_CREAT);
  if (!generation) return generation.error();
  return StateDirectory(directory, *std::move(lock), *std::move(generation));
}

void StateDirectory::write_generation_file(const std::string& boot_id, std::uint64_t generation) const {
  // The length is always the same in one boot, so that a newer text covers an older one whole.
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

Status StateDirectory::check_size() const {
  std::error_code no_log;
  if (const auto log = fs::file_size(with_suffix(database(), "-wal"), no_log); !no_log && log > 0) return {};
  const UniqueFd file(::open(database().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  // As SQLite's "Database File Format" has it: the page size at 16, at 28 the size in pages.
  std::array<unsigned char, 32> header{};
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return {};
  if (::pread(file.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size())) return {};
  const std::int64_t page = header[16] == 0 && header[17] == 1 ? 65536 : header[16] << 8 | header[17];
  std::int64_t pages = 0;
  for (std::size_t i = 28; i < 32; ++i) pages = pages << 8 | header[i];
  if (status.st_size >= page * pages) return {};
  return Error{Code::kDataLoss, fmt::format("'{}' is damaged: it has {} bytes of {}", database().string(),
                                            status.st_size, page * pages)};
}

Status StateDirectory::mark_damaged(const std::string& why) const {
  const auto marked = identity_of(database());
  if (!marked) return {};
  const fs::path path = mark_of(database());
  auto file = open_private(path, O_CREAT | O_TRUNC);
  if (!file) return file.error();
  const std::string text = *marked + '\n' + why + '\n';
  if (::pwrite(file->get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file->get()) == 0) {
    return {};
  }
  return cannot_use(path, errno);
}

std::optional<std::string> StateDirectory::damage_mark() const {
  std::ifstream file(mark_of(database()));
  std::string marked;
  std::string why;
  if (!std::getline(file, marked) || !std::getline(file, why)) return std::nullopt;
  if (identity_of(database()) != marked) return std::nullopt;
  return why;
}

bool StateDirectory::is_current() const {
  struct stat held {};
  struct stat there {};
  return ::fstat(lock_.get(), &held) == 0 && ::lstat((directory_ / kLockName).c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

Result<fs::path> StateDirectory::set_database_aside(std::string_view kind, std::int64_t now_ms) const {
  const auto free = [&](const fs::path& aside) {
    return !is_there(aside) && std::none_of(kCompanions.begin(), kCompanions.end(), [&](const char* companion) {
      return is_there(with_suffix(aside, companion));
    });
  };
  fs::path aside;
  do {
    aside = with_suffix(database(), fmt::format(".{}-{}", kind, now_ms++));
  } while (!free(aside));
  bool was_there = false;
  // The database goes first: were the log to go first and this end here, an older state would pass for the newest.
  for (const char* part : {"", "-wal", "-shm"}) {
    const fs::path path = with_suffix(database(), part);
    if (!is_there(path)) continue;
    if (Status renamed = rename_file(path, with_suffix(aside, part)); !renamed) return renamed.error();
    was_there = true;
  }
  std::error_code ignored;  // one that stays is not a mark of the next database
  fs::remove(mark_of(database()), ignored);
  return was_there ? aside : fs::path();
}

}  // namespace topolet::store
