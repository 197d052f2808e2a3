// Finds obstacles to a start of topoletd without starting it: nothing is written, bound or locked, and a topoletd that
// runs with the same configuration is not disturbed.
//
// The room core/preflight, namespace topolet::preflight: check() is what `topoletd --check-config` and `topolet config
// check` do. topoletd itself does check_environment() before it starts, so that every failure of the check also stops
// the start. The later steps of a start are in the other rooms, whose functions are used here as far as they change
// nothing: every failure of the start should be found by the check. It may include core/base, config, machine,
// topology, plugin and cri/socket, and the store.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/options.hpp"
#include "core/engine/state/cpu_inventory.hpp"

namespace topolet::preflight {

/// Both in the order of the files and their lines, then the command line's.
struct Findings {
  std::vector<config::ConfigMistake> mistakes;  ///< with any of them topoletd does not start
  std::vector<config::ConfigMistake> warnings;  ///< it starts, but not all is as it should be
};

/// Checks sockets, state directory and machine. Skips options for which `config` has a mistake.
Findings check_environment(const config::RawConfig& raw, const config::ValidatedConfig& config);

/// All there is: the text, the plugins (see plugin::inspect_plugins()) and the environment.
Findings check(const config::RawConfig& raw);

/// That placement.min-shared-cpus leaves no CPU to be exclusive; none if it does.
std::optional<std::string> describe_shared_minimum(const config::PlacementOptions& options,
                                                   const engine::CpuInventory& cpus);
/// The same of placement.isolated.
std::optional<std::string> describe_no_isolated(const config::PlacementOptions& options,
                                                const engine::CpuInventory& cpus);

}  // namespace topolet::preflight
