// The plugin check: tries one plugin, without a daemon, on made-up machines and requests.
//
// The room core/plugin_checker, namespace topolet::plugin_checker: what `topolet plugin check` and the SDK's program
// topolet-plugin-check run. Each case runs in a child process; cases.hpp lists them. It calls plugins through
// core/plugin, and may include core/base, topology, placement, core/engine/state and the SDK's headers besides.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/plugin/host/deprecated_capabilities.hpp"

namespace topolet::plugin_checker {

struct CheckOptions {
  std::filesystem::path file;
  std::uint64_t seed = 1;
  std::uint32_t requests = 500;         ///< how many the case "random" makes
  std::chrono::seconds time_limit{30};  ///< of each case
  std::string only_case = {};           ///< run this one; empty = all
  /// Of these the case "create-defaults" warns.
  plugin::DeprecatedCapabilities deprecated = plugin::deprecated_capabilities();
  bool json = false;  ///< one JSON document instead of lines
  /// The command as the user types it, for the line that reruns a failed case.
  std::string command = "topolet-plugin-check";
};

struct CaseDescription {
  std::string name;
  std::string what;
};

/// All there are, in the order in which they run.
std::vector<CaseDescription> list_cases();

/// Runs the cases, each in a child process, and writes one line of outcome each. The plugin is never loaded into this
/// process, which must not have other threads that hold locks. Returns 0 if all passed (warnings allowed), 1 if a case
/// failed, 2 if there is no such file or no case with that name.
int check_plugin(const CheckOptions& options, std::ostream& out);

}  // namespace topolet::plugin_checker
