// The configuration as it was written: sections, keys and values from the file and the command line, not yet validated.
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
  std::size_t line = 0;
};

struct RawConfig {
  bool help = false;
  bool version = false;
  bool check_config = false;
  bool take_over = false;
  std::filesystem::path file = kDefaultConfigFile;
  std::vector<SectionHeader> sections;
  std::vector<ConfigEntry> entries;  ///< the file's, then the command line's, each in their order
  std::vector<ConfigMistake> mistakes;
};

/// The text of a file; NOT_FOUND if there is none.
using ReadFile = std::function<Result<std::string>(const std::filesystem::path&)>;

/// Reads a regular file of at most 1 MiB; anything else is refused at once, a device or a FIFO as
/// well, but /dev/null is empty.
Result<std::string> read_text_file(const std::filesystem::path& file);

/// Reads `arguments` (without the program's name) and the file that they or the default name. A missing default file is
/// fine. Every mistake of form is in `mistakes`; reading goes on behind it.
RawConfig read_raw(const std::vector<std::string>& arguments, const ReadFile& read_file = read_text_file);

/// Adds what `text` holds to `raw`, naming `file` as where it is from. '#' and ';' begin a comment at the start of a
/// line, '#' also behind white space.
void read_config_text(RawConfig& raw, const std::string& file, std::string_view text);

}  // namespace topolet::config
