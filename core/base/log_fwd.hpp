// The logger's name, for those who pass it on; log.hpp is for those who write to it.
#pragma once

#include <spdlog/fwd.h>

#include <memory>
#include <string>

#include "core/base/result.hpp"

namespace topolet {

using Log = spdlog::logger;

/// Says nothing; for tests and tools.
std::shared_ptr<Log> make_silent_log();

/// `level`: trace, debug, info, warn, error or off. INVALID_ARGUMENT names the levels there are.
Status set_level(Log& log, const std::string& level);

}  // namespace topolet
