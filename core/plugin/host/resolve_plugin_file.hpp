// Checks that a file may be loaded into the daemon: who could have written it, and whether it is a library for this
// machine.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/result.hpp"

namespace topolet::plugin {

/// The canonical path of `plugin_dir`/`name`.so, if it may be loaded: a regular ELF file for this machine inside
/// `plugin_dir`, it and the directories down to it owned by root or us and not writable by others. "Others" is the
/// world, or a group other than root's or ours. Errors are one line without the plugin's name.
Result<std::filesystem::path> resolve_plugin_file(const std::filesystem::path& plugin_dir, const std::string& name);

/// The canonical path of `file`, wherever it is and whoever may write it, if it is a regular ELF file for this machine.
/// For tools, which run as who gives the file. Errors are one line.
Result<std::filesystem::path> resolve_any_plugin_file(const std::filesystem::path& file);

}  // namespace topolet::plugin
