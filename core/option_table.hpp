// What options there are. The core's own are listed here; a plugin's come from the table that it carries.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace topolet {

enum class OptionType : std::uint8_t {
  kBool,      ///< true or false
  kInt,       ///< a whole number
  kString,    ///< any text, or one of the allowed values
  kDuration,  ///< 30s, 5m, 4m30s, 500ms
  kCpus,      ///< a CPU list such as 0-3,8, or one of the allowed words
  kSocket,    ///< unix:///absolute/path, or the path alone
  kPath,      ///< an absolute path
  kName,      ///< lower-case letters, digits and dashes, beginning with a letter
};

/// One option of a plugin, as its table gives it. The first five types are for plugins.
struct PluginOption {
  std::string name;
  OptionType type = OptionType::kString;
  std::string default_value;
  std::vector<std::string> allowed;  ///< the values there are; empty = any of the type. For CPUs: words besides a list
  std::string help;
  std::int64_t least = INT64_MIN;  ///< whole numbers
  std::int64_t most = INT64_MAX;
};

/// The options of one plugin; its config section bears the plugin's name.
struct PluginSection {
  std::string plugin;
  std::vector<PluginOption> options;
  std::uint32_t default_weight = 1;
};

/// One option as the parser knows it.
struct OptionSpec {
  std::string section;
  std::string key;
  OptionType type = OptionType::kString;
  std::vector<std::string> defaults;  ///< one value; any number where it is repeatable
  std::vector<std::string> allowed = {};
  std::string help = {};
  bool repeatable = false;  ///< one line each
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;  ///< whole numbers, and milliseconds of durations

  std::string name() const { return section + '.' + key; }
};

/// The core's own options, section by section. `plugins` are the enabled ones, which get a weight and on-failure each;
/// none gives those two under the name NAME, as the help shows them.
std::vector<OptionSpec> core_options(const std::vector<std::string>& plugins);

std::vector<OptionSpec> options_of(const PluginSection& section);

/// INVALID_ARGUMENT says what is wrong with the value and what would be right.
Status check_value(const OptionSpec& spec, const std::string& value);

/// Reads "4m30s": hours (h), minutes (m), seconds (s) and milliseconds (ms), each at most once, largest first.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// The path of a unix socket from "unix:///path" or "/path".
Result<std::string> parse_socket(std::string_view text);

/// How many letters must be added, taken away or changed to make one text of the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// "did you mean X?" for the closest of `known`, or which one is nearest if none is close; written with `prefix` before
/// it. `known` must not be empty.
std::string suggestion(std::string_view wanted, const std::vector<std::string>& known, const std::string& prefix = "");

}  // namespace topolet
