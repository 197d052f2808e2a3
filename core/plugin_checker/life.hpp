// A whole life of a plugin, which is watched step by step.
#pragma once

#include <functional>
#include <string>

#include "core/plugin_checker/cases.hpp"
#include "core/plugin_checker/outcome.hpp"

namespace topolet::plugin_checker {

/// How far a life has come.
enum class LifeStage : std::uint8_t { kAlive, kDestroyed };

/// Judges what the step that has just ended did: "create", "score (request 1 on machine 1-cpu)".
using Look = std::function<MaybeMismatch(LifeStage stage, const std::string& step)>;

/// Opens the file as the loader does, but past topoletd's own code, so that what constructors did can be seen. False if
/// that fails.
bool open_file(const CaseInput& input);

/// Loads the plugin, makes an instance, makes each kind of call for one request on each machine, and destroys the
/// instance. `look` is called after each step until it finds something, which is returned.
Outcome live(const CaseInput& input, const Look& look);

}  // namespace topolet::plugin_checker
