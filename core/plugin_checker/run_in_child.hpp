// Runs one case in a process of its own, so that whatever the plugin does ends there.
#pragma once

#include <chrono>
#include <functional>

#include "core/base/run_in_child.hpp"
#include "core/plugin_checker/outcome.hpp"

namespace topolet::plugin_checker {

/// As topolet::run_in_child(). A child without a result gives a failed outcome that says why, and what it was doing.
/// The processes that it started are judged apart.
Outcome run_in_child(std::chrono::seconds time_limit, const std::function<Outcome(const Progress&)>& body);

}  // namespace topolet::plugin_checker
