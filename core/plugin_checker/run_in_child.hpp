// Runs one case in a process of its own, so that whatever the plugin does ends there.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/run_in_child.hpp"
#include "core/plugin_checker/outcome.hpp"

namespace topolet::plugin_checker {

/// As topolet::run_in_child(). A child without a result gives a failed outcome that says why, and what it was doing.
/// The processes that it started are judged apart.
Outcome run_in_child(std::chrono::seconds time_limit, const std::function<Outcome(const Progress&)>& body);

// In the child.

/// Fails the case and ends the child at once, wherever it is. From any thread.
[[noreturn]] void fail_at_once(const Progress& progress, const Mismatch& mismatch);

/// Ends the child as a program ends, so that what the plugin left for that runs: exit handlers, destructors. The case
/// passes if that is over in a few seconds; otherwise its mismatch says "in STEP".
[[noreturn]] void end_as_a_program(const Progress& progress, const std::string& step);

/// The same, but only a write to standard output fails the case, however the end is otherwise.
[[noreturn]] void end_without_output(const Progress& progress);

}  // namespace topolet::plugin_checker
