// Runs one case in a process of its own, so that whatever the plugin does ends there.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "core/conformance/outcome.hpp"

namespace topolet {

/// Notes what the case is about to do, for the one who reads of its crash. In the child only.
using Progress = std::function<void(std::string_view doing)>;

/// Forks, runs `body` in the child and waits. A child that dies, ends by itself or is not done in time (it is killed,
/// with the processes it started) gives a failed outcome that says so and what it was doing.
Outcome run_in_child(std::chrono::seconds time_limit, const std::function<Outcome(const Progress&)>& body);

}  // namespace topolet
