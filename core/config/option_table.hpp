// The options of topoletd and the values that they take.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::config {

enum class OptionType : std::uint8_t {
  kBool,        ///< true or false
  kInt,         ///< a whole number
  kFloat,       ///< a decimal number
  kString,      ///< any text, or one of the allowed values
  kWord,        ///< a text without commas and white space
  kDuration,    ///< 30s, 5m, 4m30s, 30d, 500ms
  kSize,        ///< 4096, 512Ki, 1Gi: bytes
  kList,        ///< items separated by commas, each of them one of the allowed values if there are some
  kCpus,        ///< a CPU list such as 0-3,8, or one of the allowed words
  kSocket,      ///< unix:///absolute/path, or the path alone
  kPath,        ///< an absolute path
  kName,        ///< a plugin's, see check_plugin_name()
  kNamespace,   ///< of Kubernetes: a DNS label as in RFC 1123
  kNamespaces,  ///< the same, in which * is any text
  kHandler,     ///< of a container runtime
  kHandlers,    ///< the same, in which * is any text
  kNodeName,    ///< of Kubernetes: a DNS subdomain as in RFC 1123; or empty
};

/// One option: a key of the configuration file, and a flag. The core's are listed in core_options(), a plugin's in the
/// table that its library carries.
struct OptionSpec {
  std::string section;  ///< of a plugin: its name
  std::string key;
  OptionType type = OptionType::kString;
  std::vector<std::string> defaults;  ///< one value; any number where it is repeatable; none counts if it is required
  /// The only values there are; empty = any of the type. For CPUs and sockets: words besides a list, an address or
  /// a path.
  std::vector<std::string> allowed = {};
  std::string help = {};
  bool repeatable = false;             ///< one line each
  std::vector<std::string> lone = {};  ///< of a repeatable option: values that no other may stand beside
  std::int64_t minimum = INT64_MIN;
  std::int64_t maximum = INT64_MAX;  ///< numbers, milliseconds of durations, and bytes of sizes
  bool required = false;             ///< a configuration without it has a mistake
  bool secret = false;               ///< its value is shown to the plugin alone

  std::string name() const { return section + '.' + key; }
};

/// The options of one plugin; its config section bears the plugin's name.
struct PluginSection {
  std::string plugin;
  std::vector<OptionSpec> options;
  std::uint32_t default_weight = 1;
  std::string description = {};  ///< one sentence, or empty
};

/// The core's own options, section by section. `plugins` are the enabled ones; each gets the keys weight,
/// on-failure and required.
std::vector<OptionSpec> core_options(const std::vector<std::string>& plugins);

/// Values by option; those of a repeatable one in their order.
using OptionValues = std::multimap<std::string, std::string>;

/// What is shown in the place of a secret.
inline constexpr const char* kHiddenValue = "***";

/// Returns true if a plugin or an option may have this name: lower-case letters, digits and dashes, beginning with a
/// letter, at most 64 of them. Names go into file names, config sections and flags.
bool is_plain_name(std::string_view name);

/// Returns true for the names that are the core's, now or later.
bool is_reserved_plugin_name(std::string_view name);

/// INVALID_ARGUMENT if no plugin may be called so: its name must be plain, and not reserved.
Status check_plugin_name(const std::string& name);

/// INVALID_ARGUMENT or OUT_OF_RANGE says what is wrong with the value and what would be right. A secret is not quoted.
Status check_value(const OptionSpec& spec, const std::string& value);

/// Returns a value that passed check_value() as plugins are given it: durations in milliseconds, sizes in bytes, lists
/// without white space, CPU lists in their shortest form.
std::string plain_value(const OptionSpec& spec, const std::string& value);

/// Returns the default, or another value that fits if the default does not.
std::string fitting_value(const OptionSpec& spec);

/// Returns true unless the value of an option that nothing is known of is a number, an amount, true or false.
bool may_be_secret(const std::string& value);

/// Returns the value, or kHiddenValue for a secret.
std::string shown_value(const OptionSpec& option, const std::string& value);
/// Returns the values as one text, each of them as shown_value() has it unless it is empty.
std::string shown_values(const OptionSpec& option, const std::vector<std::string>& values);

/// Returns those of `values`, by key, that may be shown to anybody: numbers, amounts, and words that the option has a
/// list of. Several values of one option are joined by commas.
std::map<std::string, std::string> values_without_secrets(const std::vector<OptionSpec>& options,
                                                          const OptionValues& values);

/// Reads "4m30s": hours (h), minutes (m), seconds (s) and milliseconds (ms), each at most once, largest first.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// Returns the bytes of "4096", "512Ki", "1Gi" or "2M".
Result<std::int64_t> parse_size(std::string_view text);

/// The path of a unix socket from "unix:///path" or "/path".
Result<std::string> parse_socket(std::string_view text);

/// As suggestion(), for options that are written SECTION.KEY, of which the key counts.
std::string key_suggestion(std::string_view wanted, const std::vector<std::string>& known,
                           const std::string& prefix = "");

}  // namespace topolet::config
