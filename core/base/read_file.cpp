#include "core/base/read_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/unique_fd.hpp"

namespace topolet {
namespace {

Error too_large(std::size_t max_bytes) {
  return {Code::kResourceExhausted, fmt::format("it has more than {} MiB", max_bytes >> 20U)};
}

bool is_null_device(const struct stat& status) { return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3); }

Status check_kind(const struct stat& status, std::size_t max_bytes) {
  if (S_ISDIR(status.st_mode)) return Error{Code::kInvalidArgument, std::strerror(EISDIR)};
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalidArgument, "it is not a regular file"};
  return status.st_size > static_cast<off_t>(max_bytes) ? Status(too_large(max_bytes)) : Status();
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& file, std::size_t max_bytes) {
  struct stat status {};
  // Before it is opened, as opening a device may already do something.
  if (::stat(file.c_str(), &status) != 0)
    return Error{errno == ENOENT ? Code::kNotFound : Code::kPermissionDenied, std::strerror(errno)};
  if (is_null_device(status)) return std::string();
  if (Status checked = check_kind(status, max_bytes); !checked) return checked.error();
  const UniqueFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!opened || ::fstat(opened.get(), &status) != 0) return Error{Code::kPermissionDenied, std::strerror(errno)};
  if (Status checked = check_kind(status, max_bytes); !checked) return checked.error();
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  // Some files of the kernel have more in them than their size says.
  while ((count = ::read(opened.get(), buffer.data(), buffer.size())) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error{Code::kDataLoss, std::string("reading it failed: ") + std::strerror(errno)};
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > max_bytes) return too_large(max_bytes);
  }
  return text;
}

}  // namespace topolet
