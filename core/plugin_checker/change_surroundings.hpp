// Makes a process differ from others in all that a plugin's answers must not depend on.
#pragma once

#include <cstdint>

namespace topolet::plugin_checker {

/// Changes where memory lies and what it holds before it is written, the environment, the CPUs that may be used,
/// and the name of the host.
/// Before a plugin is loaded.
void change_surroundings(std::uint64_t seed);

}  // namespace topolet::plugin_checker
