#include "core/base/file_access.hpp"

#include <fmt/format.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace topolet {
namespace {

/// Where there is an access list, the group's bits are its mask: the most that anybody named in it may do.
bool has_access_list(const std::filesystem::path& path) {
  return ::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

bool writable_by_others(const std::filesystem::path& path, const struct stat& status) {
  if ((status.st_mode & S_IWOTH) != 0) return true;
  if ((status.st_mode & S_IWGRP) == 0) return false;
  return (status.st_gid != 0 && status.st_gid != ::getegid()) || has_access_list(path);
}

}  // namespace

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

}  // namespace topolet
