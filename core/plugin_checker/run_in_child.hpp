// Runs one case in a process of its own, so that whatever the plugin does ends there.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "core/plugin_checker/outcome.hpp"

namespace topolet::plugin_checker {

/// Records what the case is about to do, so that the report of a crash can name it. In the child only.
using Progress = std::function<void(std::string_view current_step)>;

/// Forks, runs `body` in the child and waits. A child that dies, ends by itself or is not done in time (it is killed,
/// with the processes it started) gives a failed outcome that says so and what it was doing.
Outcome run_in_child(std::chrono::seconds time_limit, const std::function<Outcome(const Progress&)>& body);

}  // namespace topolet::plugin_checker
