// Identifies the version of a library file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace topolet::plugin {

/// Tells one version of a file from another. The linker's build-id says what a library is made of; where there is none,
/// size and time must do.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::string build_id;  ///< of an ELF file for this machine; its raw bytes
  std::int64_t size = 0;
  std::int64_t changed_ns = 0;  ///< its mtime

  /// All zero for a file that cannot be read.
  static FileIdentity of(const std::filesystem::path& path);

  friend bool operator==(const FileIdentity& a, const FileIdentity& b) {
    if (a.device != b.device || a.inode != b.inode || a.build_id != b.build_id) return false;
    return !a.build_id.empty() || (a.size == b.size && a.changed_ns == b.changed_ns);
  }
};

}  // namespace topolet::plugin
