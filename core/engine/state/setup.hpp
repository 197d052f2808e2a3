// The configuration and the plugins, as the audit knows them. Plain values.
#pragma once

#include <cstdint>
#include <string>

namespace topolet::engine {

/// The setup that decisions are made with.
struct Setup {
  std::int64_t number = 0;  ///< as in Decision
  std::string version;      ///< topoletd's
  std::string config_text;  ///< a line for each value that was set, "daemon.listen = …"
  std::string plugins;      ///< as in the table `setup`
};

}  // namespace topolet::engine
