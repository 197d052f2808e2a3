// The options a plugin offers, read from its entry before it is created.
#pragma once

#include <topolet/abi.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/option_table.hpp"

namespace topolet {

/// One option a plugin offers, as its table says.
struct DeclaredOption {
  enum class Type : std::uint8_t { kString, kBool, kInteger, kChoice };
  std::string name;  ///< without the plugin's name: "strategy"
  Type type = Type::kString;
  std::string default_value;
  std::vector<std::string> allowed;  ///< for kChoice
  std::int64_t minimum = 0;          ///< for kInteger
  std::int64_t maximum = 0;
  std::string help;

  friend bool operator==(const DeclaredOption&, const DeclaredOption&) = default;
};

/// Lower case, digits and '-', not first: names go into file names, config sections and flags.
bool is_plain_name(std::string_view name);

/// INVALID_ARGUMENT with what is wrong and what would be right, without the option's name.
Status check_option_value(const DeclaredOption& option, std::string_view value);

/// The same as the configuration knows it.
PluginOption to_plugin_option(const DeclaredOption& option);

/// Reads an entry's table. INTERNAL if it is malformed: a name twice, an unknown type, a default that is not allowed.
Result<std::vector<DeclaredOption>> read_option_table(const topolet_plugin_entry& entry);

}  // namespace topolet
