#include "core/base/file_access.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace topolet {
namespace {

/// Returns true if the file has an access list. The group's bits are its mask then: the most that anybody named in it
/// may do.
bool has_access_list(const std::filesystem::path& path) {
  return ::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

bool writable_by_others(const std::filesystem::path& path, const struct stat& status) {
  if ((status.st_mode & S_IWOTH) != 0) return true;
  if ((status.st_mode & S_IWGRP) == 0) return false;
  return (status.st_gid != 0 && status.st_gid != ::getegid()) || has_access_list(path);
}

/// The kernel's own file systems, in which even root can create no file.
bool takes_no_files(const std::filesystem::path& directory) {
  constexpr std::array<std::uint64_t, 14> kTakeNone = {
      PROC_SUPER_MAGIC, SYSFS_MAGIC,      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC,
      DEBUGFS_MAGIC,    SECURITYFS_MAGIC, TRACEFS_MAGIC,      NSFS_MAGIC,          BINFMTFS_MAGIC,
      BPF_FS_MAGIC,     EFIVARFS_MAGIC,   PSTOREFS_MAGIC,     SELINUX_MAGIC};
  struct statfs status {};
  if (::statfs(directory.c_str(), &status) != 0) return false;
  return std::find(kTakeNone.begin(), kTakeNone.end(), static_cast<std::uint64_t>(status.f_type)) != kTakeNone.end();
}

}  // namespace

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

int cannot_create_in(const std::filesystem::path& directory, std::filesystem::path& at) {
  at = directory;
  struct stat status {};
  while (::stat(at.c_str(), &status) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return errno;
    // A link that leads nowhere is in the way of a directory.
    if (::lstat(at.c_str(), &status) == 0) return ENOENT;
    if (!at.has_relative_path()) return ENOENT;
    at = at.parent_path();
  }
  if (!S_ISDIR(status.st_mode)) return ENOTDIR;
  if (::faccessat(AT_FDCWD, at.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return errno;
  return takes_no_files(at) ? EPERM : 0;
}

Status check_writers(const std::filesystem::path& path, const struct stat& status) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return Error{Code::kPermissionDenied,
                 fmt::format("{} is owned by user {}; it must be owned by root or by the user topoletd runs as",
                             path.native(), status.st_uid)};
  }
  if (writable_by_others(path, status)) {
    return Error{Code::kPermissionDenied, fmt::format("{} is writable by others (mode {:04o}, group {}); chmod go-w it",
                                                      path.native(), status.st_mode & 07777U, status.st_gid)};
  }
  return {};
}

std::filesystem::path resolve_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as the kernel has it
  std::error_code ignored;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, ignored); ++i)
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);
  std::filesystem::path parent = std::filesystem::weakly_canonical(path.parent_path(), ignored);
  return (parent.empty() ? path.parent_path() : parent) / path.filename();
}

}  // namespace topolet
