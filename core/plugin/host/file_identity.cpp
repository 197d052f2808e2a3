#include "core/plugin/host/file_identity.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/unique_fd.hpp"

namespace topolet::plugin {
namespace {

/// The largest note that is read; linkers do not make larger ones.
constexpr std::size_t kMaxNoteBytes = 64 << 10;

/// The notes of one segment, one after the other: a header, a name and a description, both padded to `align`.
std::string build_id_in(std::string_view notes, std::size_t align) {
  const auto padded = [align](std::size_t size) { return (size + align - 1) / align * align; };
  ElfW(Nhdr) note{};
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    const std::size_t name_end = padded(note.n_namesz);
    if (name_end > notes.size() || note.n_descsz > notes.size() - name_end) return {};
    const std::string_view name = notes.substr(0, note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
      return std::string(notes.substr(name_end, note.n_descsz));
    }
    notes.remove_prefix(std::min(name_end + padded(note.n_descsz), notes.size()));
  }
  return {};
}

std::size_t alignment(const ElfW(Phdr) & segment) { return segment.p_align == 8 ? 8 : 4; }

template <class Value>
bool read_at(int file, std::uint64_t offset, Value& value) {
  return ::pread(file, &value, sizeof value, static_cast<off_t>(offset)) == static_cast<ssize_t>(sizeof value);
}

std::string build_id_of(int file) {
  ElfW(Ehdr) header{};
  if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    if (!read_at(file, header.e_phoff + i * header.e_phentsize, segment)) return {};
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (::pread(file, notes.data(), notes.size(), static_cast<off_t>(segment.p_offset)) !=
        static_cast<ssize_t>(notes.size())) {
      return {};
    }
    if (std::string found = build_id_in(notes, alignment(segment)); !found.empty()) return found;
  }
  return {};
}

}  // namespace

FileIdentity FileIdentity::of(const std::filesystem::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, S_ISREG(status.st_mode) ? build_id_of(file.get()) : std::string(),
          status.st_size, std::int64_t{status.st_mtim.tv_sec} * 1000000000 + status.st_mtim.tv_nsec};
}

}  // namespace topolet::plugin
