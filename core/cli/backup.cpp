#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/unique_fd.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

namespace fs = std::filesystem;

Error failed(const std::string& what) {
  return {Code::kUnavailable, fmt::format("cannot {}: {}", what, std::strerror(errno))};
}

Error already_there(const fs::path& file) {
  return {Code::kAlreadyExists, fmt::format("{} exists, and nothing is overwritten; name another file", file.string())};
}

fs::path directory_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

/// An empty file with mode 0600 beside `target`. It is removed, with what SQLite made beside it, unless it was renamed.
class Draft {
 public:
  static Result<Draft> beside(const fs::path& target) {
    std::string name = directory_of(target) / fmt::format(".{}.XXXXXX", target.filename().string());
    const UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
    if (!file) return failed(fmt::format("create a file in {}", directory_of(target).string()));
    return Draft(name);
  }
  explicit Draft(std::string name) : name_(std::move(name)) {}
  Draft(Draft&& other) noexcept : name_(std::exchange(other.name_, {})) {}
  Draft& operator=(Draft&&) = delete;
  ~Draft() {
    if (name_.empty()) return;
    for (const char* suffix : {"", "-journal", "-wal", "-shm"}) ::unlink((name_ + suffix).c_str());
  }

  const std::string& name() const { return name_; }

  Status sync() const {
    const UniqueFd file(::open(name_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file || ::fsync(file.get()) != 0) return failed("write " + name_);
    return {};
  }

  /// Renames the file without overwriting another one. If the file system cannot do that at once (NFS), a second link
  /// does the same in two steps.
  Status rename_to(const fs::path& target) {
    if (::renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) {
      name_.clear();
    } else if (errno != EINVAL || ::link(name_.c_str(), target.c_str()) != 0) {
      return errno == EEXIST ? already_there(target) : failed(fmt::format("rename {} to {}", name_, target.string()));
    }
    const UniqueFd directory(::open(directory_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory || ::fsync(directory.get()) != 0) return failed("write " + directory_of(target).string());
    return {};
  }

 private:
  std::string name_;
};

}  // namespace

void declare_backup(Options& options) { declare_database_file(options); }

// SQLite's backup API rather than VACUUM INTO. Both need one read transaction, without which a copy of a database that
// is written to would begin anew again and again. Neither blocks the writer: the log grows by what is written
// meanwhile. But VACUUM builds every table and index anew, while the backup only copies pages, and so is done sooner.
Status back_up(const Invocation& invocation) {
  const fs::path target = invocation.arguments[0];
  if (!target.has_filename()) return Error{Code::kInvalidArgument, "name the file to write"};
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(target, ignored))) return already_there(target);
  const auto database = open_read_only(invocation);
  if (!database) return database.error();
  auto draft = Draft::beside(target);
  if (!draft) return draft.error();
  if (Status copied = database->copy_to(draft->name()); !copied) return copied;
  if (Status synced = draft->sync(); !synced) return synced;
  if (Status renamed = draft->rename_to(target); !renamed) return renamed;
  print_line(
      fmt::format("wrote {0}; read it with --database, for example: topolet ps --database {0}", target.string()));
  return {};
}

}  // namespace topolet::cli
