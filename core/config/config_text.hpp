// The configuration as it was written: sections, keys and values from its files and the command line, not yet
// validated.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::config {

inline constexpr const char* kDefaultConfigFile = "/etc/topolet/topolet.conf";

/// One thing that is wrong with the configuration.
struct ConfigMistake {
  std::string file;      ///< empty: the command line
  std::size_t line = 0;  ///< counted from 1; 0: the file as a whole, or the command line
  std::string message;

  /// "FILE:LINE: message", "FILE: message" or "command line: message"
  std::string to_string() const;

  friend bool operator==(const ConfigMistake&, const ConfigMistake&) = default;
};

/// One `key = value` with where it was written.
struct ConfigEntry {
  std::string section;  ///< empty: before any [section], or a flag without a dot
  std::string key;
  std::string value;
  std::string file = {};  ///< empty: the command line
  std::size_t line = 0;

  bool is_flag() const { return file.empty(); }
};

struct SectionHeader {
  std::string name;
  std::string file = {};
  std::size_t line = 0;
};

struct RawConfig {
  bool help = false;
  bool version = false;
  bool check_config = false;
  bool take_over = false;
  std::filesystem::path file = kDefaultConfigFile;  ///< the main file, which may be missing
  std::vector<std::string> files = {};    ///< it if it is there, and its parts, in the order in which they count
  std::vector<std::string> ignored = {};  ///< what lies among the parts and is none
  std::vector<SectionHeader> sections;
  std::vector<ConfigEntry> entries;        ///< the files', without those that are replaced; then the command line's
  std::vector<ConfigEntry> replaced = {};  ///< of keys that a later file sets as well
  std::vector<ConfigMistake> mistakes;
};

/// The text of a file; NOT_FOUND if there is none.
using ReadFile = std::function<Result<std::string>(const std::filesystem::path&)>;
/// The names in a directory, in any order; NOT_FOUND if there is none.
using ListDirectory = std::function<Result<std::vector<std::string>>(const std::filesystem::path&)>;

/// Reads a regular file of at most 1 MiB; anything else is refused at once, a device or a FIFO as
/// well, but /dev/null is empty.
Result<std::string> read_text_file(const std::filesystem::path& file);

Result<std::vector<std::string>> list_directory(const std::filesystem::path& directory);

/// Reads `arguments` (without the program's name), the file that they or the default name, and its parts: the files of
/// FILE.d whose names end in .conf and do not begin with a dot, sorted by the bytes of their names. If several files
/// set a key, the last one wins. A missing default file is fine, and a named one is too if it has parts. Every mistake
/// of form is in `mistakes`; reading goes on after it.
RawConfig read_raw(const std::vector<std::string>& arguments, const ReadFile& read_file = read_text_file,
                   const ListDirectory& list = list_directory);

/// In the order of the files and their lines, then the command line's.
void sort_by_place(const RawConfig& raw, std::vector<ConfigMistake>& mistakes);

/// The values that count: a flag takes the place of all that the files say of its key.
std::vector<ConfigEntry> entries_in_force(const RawConfig& raw);

/// Adds what `text` holds to `raw`, naming `file` as where it is from. '#' and ';' begin a comment at the start of a
/// line, '#' also behind white space.
void read_config_text(RawConfig& raw, const std::string& file, std::string_view text);

}  // namespace topolet::config
