#include "cluster/api/text_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace topolet::api {

Result<std::string> read_text_file(const std::string& path) {
  constexpr std::size_t kMaxBytes = 4 << 20;
  const auto fail = [&path](int error) {
    const Code code = error == ENOENT   ? Code::kNotFound
                      : error == EACCES ? Code::kPermissionDenied
                                        : Code::kInvalidArgument;
    return Error{code, fmt::format("{} cannot be read: {}", path, std::strerror(error))};
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(errno != 0 ? errno : EIO);
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail(errno != 0 ? errno : EIO);
  text.resize(static_cast<std::size_t>(file.gcount()));
  // A folder can be opened, but not read.
  if (text.empty() && errno == EISDIR) return fail(errno);
  if (text.size() > kMaxBytes) return fail(EFBIG);
  return text;
}

}  // namespace topolet::api
