// The logger is passed in, never global. Env values and other secrets are never logged.
#pragma once

#include <spdlog/logger.h>

#include "core/base/log_fwd.hpp"
