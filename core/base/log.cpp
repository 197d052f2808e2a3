#include "core/base/log.hpp"

#include <spdlog/sinks/null_sink.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace topolet {

std::shared_ptr<Log> make_silent_log() {
  return std::make_shared<Log>("topolet", std::make_shared<spdlog::sinks::null_sink_mt>());
}

Status set_level(Log& log, const std::string& level) {
  constexpr std::array<std::string_view, 6> kLevels = {"trace", "debug", "info", "warn", "error", "off"};
  if (std::find(kLevels.begin(), kLevels.end(), level) == kLevels.end()) {
    return Error{Code::kInvalidArgument,
                 "unknown log level '" + level + "'; use trace, debug, info, warn, error or off"};
  }
  log.set_level(spdlog::level::from_str(level));
  return {};
}

}  // namespace topolet
