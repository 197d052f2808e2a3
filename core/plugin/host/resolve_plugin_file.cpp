#include "core/plugin/host/resolve_plugin_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <vector>

#include "core/base/file_access.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet::plugin {
namespace {

namespace fs = std::filesystem;

Error refused(Code code, std::string message) { return {code, std::move(message)}; }

/// "there are: gpu, numa", for the one who mistyped.
std::string present_plugins(const fs::path& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".so") names.push_back(at->path().stem().string());
  }
  if (names.empty()) return "there are no plugins in that directory";
  std::sort(names.begin(), names.end());
  return fmt::format("there are: {}", fmt::join(names, ", "));
}

/// The directories from `dir` up to `top`, both included.
Status check_directories(fs::path dir, const fs::path& top) {
  while (true) {
    struct stat status {};
    if (::stat(dir.c_str(), &status) != 0) {
      return refused(Code::kNotFound, fmt::format("cannot read {}: {}", dir.native(), std::strerror(errno)));
    }
    if (auto checked = check_writers(dir, status); !checked) return checked;
    if (dir == top) return {};
    dir = dir.parent_path();
  }
}

bool is_inside(const fs::path& path, const fs::path& dir) {
  return std::mismatch(dir.begin(), dir.end(), path.begin(), path.end()).first == dir.end();
}

struct ElfIdentity {
  std::array<unsigned char, EI_NIDENT> ident{};
  Elf64_Half type = 0;
  Elf64_Half machine = 0;
};

bool read_identity(int fd, ElfIdentity& identity) {
  static_assert(sizeof(ElfIdentity) == EI_NIDENT + 4, "these are the first bytes of the file");
  return ::pread(fd, &identity, sizeof(identity), 0) == static_cast<ssize_t>(sizeof(identity)) &&
         std::memcmp(identity.ident.data(), ELFMAG, SELFMAG) == 0;
}

/// The running program is what a library for this machine looks like.
Status check_elf(const fs::path& path, int fd) {
  ElfIdentity library;
  if (!read_identity(fd, library)) {
    return refused(Code::kInvalidArgument, fmt::format("{} is not an ELF file", path.native()));
  }
  const UniqueFd self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  ElfIdentity ours;
  if (!self || !read_identity(self.get(), ours)) return {};
  if (library.machine != ours.machine || library.ident[EI_CLASS] != ours.ident[EI_CLASS] ||
      library.ident[EI_DATA] != ours.ident[EI_DATA]) {
    return refused(Code::kInvalidArgument,
                   fmt::format("{} is for another architecture (ELF machine {}, this one is {})", path.native(),
                               library.machine, ours.machine));
  }
  return {};
}

/// The loader maps what the headers say and dies of SIGBUS where a file ends before that.
template <class Header, class Segment>
bool is_whole(int file, std::uint64_t size) {
  Header header{};
  if (::pread(file, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return false;
  if (header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize > size) return false;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Segment segment{};
    const auto at = static_cast<off_t>(header.e_phoff + i * header.e_phentsize);
    if (::pread(file, &segment, sizeof segment, at) != static_cast<ssize_t>(sizeof segment)) return false;
    if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset) return false;
  }
  return true;
}

enum class Writers : std::uint8_t { kOursOnly, kAny };

Status check_file(const fs::path& path, Writers writers) {
  // O_NONBLOCK: a FIFO must not hold the daemon up before it is found to be none of ours.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    return refused(Code::kNotFound, fmt::format("cannot open {}: {}", path.native(), std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return refused(Code::kInvalidArgument, fmt::format("{} is not a regular file", path.native()));
  }
  if (writers == Writers::kOursOnly) {
    if (auto checked = check_writers(path, status); !checked) return checked;
  }
  if (auto checked = check_elf(path, file.get()); !checked) return checked;
  if (!is_whole<ElfW(Ehdr), ElfW(Phdr)>(file.get(), static_cast<std::uint64_t>(status.st_size))) {
    return refused(Code::kInvalidArgument, fmt::format("{} is truncated; copy it again", path.native()));
  }
  return {};
}

}  // namespace

Result<fs::path> resolve_plugin_file(const fs::path& plugin_dir, const std::string& name) {
  std::error_code error;
  const fs::path dir = fs::canonical(plugin_dir, error);
  if (error) {
    return refused(Code::kNotFound, fmt::format("plugin-dir {}: {}", plugin_dir.native(), error.message()));
  }
  const fs::path written = dir / (name + ".so");
  const fs::path path = fs::canonical(written, error);
  if (error) {
    return refused(Code::kNotFound, fmt::format("{}: {}; {}", written.native(), error.message(), present_plugins(dir)));
  }
  if (!is_inside(path, dir)) {
    return refused(Code::kPermissionDenied, fmt::format("{} leads out of plugin-dir to {}; put the file itself there",
                                                        written.native(), path.native()));
  }
  if (auto checked = check_directories(path.parent_path(), dir); !checked) return checked.error();
  if (auto checked = check_file(path, Writers::kOursOnly); !checked) return checked.error();
  return path;
}

Result<fs::path> resolve_any_plugin_file(const fs::path& file) {
  std::error_code error;
  const fs::path path = fs::canonical(file, error);
  if (error) return refused(Code::kNotFound, fmt::format("{}: {}", file.native(), error.message()));
  if (auto checked = check_file(path, Writers::kAny); !checked) return checked.error();
  return path;
}

}  // namespace topolet::plugin
