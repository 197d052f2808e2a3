#include "core/cri/socket/runtime_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/base/file_access.hpp"
#include "core/base/file_lock.hpp"

namespace topolet::cri {
namespace {

namespace fs = std::filesystem;

/// "/run/a-b.sock" is "run-a%2Db.sock": no two paths have the same name.
std::string file_name_of(const fs::path& path) {
  std::string name;
  for (const char letter : path.relative_path().string()) {
    if (letter == '/') {
      name += '-';
    } else if (letter == '-' || letter == '%') {
      name += fmt::format("%{:02X}", letter);
    } else {
      name += letter;
    }
  }
  return name;
}

std::vector<fs::path> lock_files(const fs::path& directory, const std::string& runtime) {
  const fs::path socket = resolve_links(runtime);
  std::vector<fs::path> files{directory / fmt::format("runtime-{}.lock", file_name_of(socket))};
  struct stat parent {};
  if (::stat(socket.parent_path().c_str(), &parent) == 0) {
    files.push_back(directory / fmt::format("runtime@{}.{}-{}.lock", parent.st_dev, parent.st_ino,
                                            file_name_of(socket.filename())));
  }
  return files;
}

bool is_at(const UniqueFd& open, const fs::path& path) {
  struct stat held {};
  struct stat there {};
  return ::fstat(open.get(), &held) == 0 && ::lstat(path.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
         held.st_ino == there.st_ino;
}

Error no_lock(const fs::path& path, int error) {
  return {Code::kUnavailable, fmt::format("cannot lock {}: {}", path.string(), std::strerror(error))};
}

void write_user(const UniqueFd& lock, const RuntimeUser& user) {
  const std::string text = fmt::format("{}\n{}\n{}\n", user.process, user.control, user.config);
  if (::ftruncate(lock.get(), 0) == 0) static_cast<void>(::pwrite(lock.get(), text.data(), text.size(), 0) == 0);
}

RuntimeUser read_user(const UniqueFd& lock) {
  std::array<char, 4096> bytes{};
  const ssize_t size = ::pread(lock.get(), bytes.data(), bytes.size(), 0);
  std::istringstream text(std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))));
  RuntimeUser user;
  text >> user.process;
  text.ignore(1);
  std::getline(text, user.control);
  std::getline(text, user.config);
  return user;
}

Result<UniqueFd> take(const fs::path& path, const std::string& runtime, std::vector<UniqueFd>& handed_over) {
  for (UniqueFd& lock : handed_over) {
    if (lock && is_at(lock, path)) return std::move(lock);
  }
  while (true) {
    UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!lock) return no_lock(path, errno);
    const int error = lock_file(lock.get());
    if (error == EWOULDBLOCK) {
      return Error{Code::kFailedPrecondition,
                   fmt::format("another topoletd{} uses the runtime at {}: two would undo each other's CPU sets; stop "
                               "that one first",
                               describe(read_user(lock)), runtime)};
    }
    if (error != 0) return no_lock(path, error);
    // Whoever had it before may have removed it meanwhile.
    if (is_at(lock, path)) return lock;
  }
}

}  // namespace

std::string describe(const RuntimeUser& user) {
  if (user.process <= 0) return "";
  if (user.config.empty()) return fmt::format(" (process {})", user.process);
  return fmt::format(" (process {}, configuration {})", user.process, user.config);
}

fs::path RuntimeLock::directory() {
  const char* for_tests = std::getenv("TOPOLET_RUN_DIR");
  return for_tests != nullptr && *for_tests != 0 ? for_tests : "/run/topolet";
}

Result<RuntimeLock> RuntimeLock::acquire(const fs::path& directory, const std::string& runtime, const RuntimeUser& user,
                                         std::vector<UniqueFd> handed_over) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return no_lock(directory, error.value());
  RuntimeLock all;
  for (const fs::path& path : lock_files(directory, runtime)) {
    Result<UniqueFd> lock = take(path, runtime, handed_over);
    if (!lock) return lock.error();
    all.files_.push_back(path);
    all.locks_.push_back(*std::move(lock));
  }
  for (const UniqueFd& lock : all.locks_) write_user(lock, user);
  return all;
}

RuntimeLock::~RuntimeLock() {
  for (const fs::path& file : files_) ::unlink(file.c_str());
}

std::vector<UniqueFd> RuntimeLock::duplicate() const {
  std::vector<UniqueFd> copies;
  for (const UniqueFd& lock : locks_) copies.emplace_back(::fcntl(lock.get(), F_DUPFD_CLOEXEC, 0));
  return copies;
}

std::optional<RuntimeUser> find_runtime_user(const fs::path& directory, const std::string& runtime) {
  for (const fs::path& path : lock_files(directory, runtime)) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file && is_locked(file.get())) return read_user(file);
  }
  return std::nullopt;
}

}  // namespace topolet::cri
