#include "core/replay/record_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/replay/record_format.hpp"

namespace topolet::replay {
namespace {

Error failed(const char* what, const std::filesystem::path& file, int why) {
  return {Code::kUnavailable, fmt::format("{} {}: {}", what, file.string(), std::strerror(why))};
}

std::string read_at(int fd, off_t offset, std::size_t length) {
  std::string bytes(length, '\0');
  const ssize_t got = ::pread(fd, bytes.data(), length, offset);
  bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return bytes;
}

}  // namespace

Result<RecordFile> RecordFile::open(const std::filesystem::path& file) {
  RecordFile opened(file);
  if (Status ready = opened.open_file(); !ready) return ready.error();
  return opened;
}

Status RecordFile::open_file() {
  fd_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd_) return failed("cannot open", path_, errno);
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return failed("cannot look at", path_, errno);
  const bool is_record =
      S_ISREG(status.st_mode) &&
      (status.st_size == 0 || read_at(fd_.get(), 0, kRecordBegin.size()) == std::string(kRecordBegin));
  if (!is_record) {
    return Error{Code::kFailedPrecondition,
                 fmt::format("{} exists and is not a record; name another file", path_.string())};
  }
  // Whoever made it before may have let others read it.
  if (::fchmod(fd_.get(), 0600) != 0) return failed("cannot change the mode of", path_, errno);
  size_ = static_cast<std::uint64_t>(status.st_size);
  return end_torn_line();
}

/// A daemon that was killed while it wrote leaves one.
Status RecordFile::end_torn_line() {
  if (size_ == 0 || read_at(fd_.get(), static_cast<off_t>(size_ - 1), 1) == "\n") return {};
  return append("");
}

Status RecordFile::append(std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  for (std::size_t written = 0; written < bytes.size();) {
    const ssize_t now = ::write(fd_.get(), bytes.data() + written, bytes.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return failed("cannot write to", path_, errno);
    written += static_cast<std::size_t>(now);
    size_ += static_cast<std::uint64_t>(now);
  }
  return {};
}

Status RecordFile::rotate() {
  const std::filesystem::path aside = path_.string() + ".1";
  if (::rename(path_.c_str(), aside.c_str()) != 0) return failed("cannot rename", path_, errno);
  return open_file();
}

}  // namespace topolet::replay
