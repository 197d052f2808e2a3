// The options a plugin offers, read from its entry before it is created.
#pragma once

#include <topolet/abi.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace topolet {

/// One option a plugin offers, as its table says.
struct PluginOption {
  enum class Type : std::uint8_t { kString, kBool, kInteger, kChoice };
  std::string name;  ///< without the plugin's name: "strategy"
  Type type = Type::kString;
  std::string default_value;
  std::vector<std::string> allowed;  ///< for kChoice
  std::int64_t minimum = 0;          ///< for kInteger
  std::int64_t maximum = 0;
  std::string help;

  friend bool operator==(const PluginOption&, const PluginOption&) = default;
};

/// Lower case, digits and '-', not first: names go into file names, config sections and flags.
bool is_plain_name(std::string_view name);

/// INVALID_ARGUMENT with what is wrong and what would be right, without the option's name.
Status check_option_value(const PluginOption& option, std::string_view value);

/// Reads an entry's table. INTERNAL if it is malformed: a name twice, an unknown type, a default that is not allowed.
Result<std::vector<PluginOption>> read_option_table(const topolet_plugin_entry& entry);

}  // namespace topolet
