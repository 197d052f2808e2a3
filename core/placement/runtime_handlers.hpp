// The runtime handlers whose containers are placed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::placement {

/// The name of the runtime's default handler, which is empty, in the configuration and in texts.
inline constexpr std::string_view kDefaultHandler = "default";

/// "default" for the runtime's own default, else the name.
std::string handler_name(std::string_view handler);

/// As configured. Every handler's containers are placed but those of the VM-based ones.
struct RuntimeHandlers {
  std::optional<std::vector<std::string>> only = {};  ///< placement.handlers: names; absent where it is not set
  std::vector<std::string> foreign = {};              ///< placement.foreign-handlers: patterns, in which * is any text

  /// The setting because of which the handler's containers are not placed, such as "placement.foreign-handlers =
  /// kata*"; empty if they are.
  std::string obstacle(std::string_view handler) const;
};

}  // namespace topolet::placement
