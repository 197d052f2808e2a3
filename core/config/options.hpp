// The daemon's configuration. It is read in two steps, because the plugins' options are known only once the plugins are
// loaded:
//   raw = read_raw(arguments); choice = enabled_plugins(raw); [load the plugins' option tables];
//   validate_config(raw, tables).
// All of it is pure, except for reading the file.
//
// The room core/config, namespace topolet::config: turns the configuration file and the command line into checked
// options, and names every mistake. It may include core/base and, for the values that options end up in,
// core/placement/placement_rules.hpp, core/placement/runtime_handlers.hpp and store/limits.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/config/config_text.hpp"
#include "core/config/option_table.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/runtime_handlers.hpp"
#include "store/limits.hpp"

namespace topolet::config {

/// How containers come to topolet.
enum class Front : std::uint8_t { kCri, kNri };

struct DaemonOptions {
  Front front = Front::kCri;
  std::string listen;  ///< path of a unix socket, as are the next four; empty but for Front::kCri
  std::string control;
  std::string watch;  ///< empty: none
  std::string runtime;
  std::string image;                        ///< the runtime's, unless set
  std::string watch_group;                  ///< name or number; empty: the process's own
  std::filesystem::path cpu_manager_state;  ///< of the kubelet; it need not exist
  std::filesystem::path state_dir;
  std::filesystem::path plugin_dir;
  std::string log_level;
  store::Durability durability = store::Durability::kNormal;
  std::chrono::milliseconds store_patience{};
  std::chrono::milliseconds drain_timeout{};
  store::RetentionLimits retention = {};
  std::string load;                ///< when it is measured: auto, on, off
  std::filesystem::path record;    ///< empty: nothing is recorded
  std::uint64_t record_bytes = 0;  ///< how large the file may become
  std::size_t max_connections = 0;
  std::size_t max_memory_bytes = 0;
  int max_message_bytes = 0;
  int max_metadata_bytes = 0;
};

struct PlacementOptions {
  CpuSet reserved_cpus;
  std::optional<CpuSet> allowed_cpus;  ///< absent = all
  placement::PlacementRules rules;
  std::chrono::milliseconds pending_timeout{};
  std::chrono::milliseconds start_grace{};
  std::chrono::milliseconds deadline{};       ///< for each call of a plugin
  std::chrono::milliseconds decision_time{};  ///< for all calls of a decision
  std::chrono::milliseconds plugin_timeout{};
  placement::RuntimeHandlers handlers;
  bool confine_foreign = false;
};

/// What is done where a plugin of the runtime sets the CPUs of a container instead of topolet.
enum class NriGuard : std::uint8_t { kOff, kWarn, kDeny };

struct NriOptions {
  std::string socket;  ///< path of the runtime's; empty: none
  NriGuard guard = NriGuard::kWarn;
};

struct PluginOptions {
  std::string name;
  std::int32_t weight = 1;
  bool fail_closed = false;
  bool required = false;
  OptionValues values;  ///< of every option in the plugin's table, as written or by default
};

struct Options {
  DaemonOptions daemon;
  PlacementOptions placement;
  NriOptions nri;
  std::vector<PluginOptions> plugins;  ///< the enabled ones, in the order in which they are named
  OptionValues configuration;          ///< of every option but secrets, by "SECTION.KEY", as plugins are given them
};

/// The core's options and those of the plugins in `sections`, whose own weights are their defaults. `plugins`: the
/// enabled ones.
std::vector<OptionSpec> all_options(const std::vector<std::string>& plugins,
                                    const std::vector<PluginSection>& sections);

/// Returns the entries with kHiddenValue in the place of secrets. `sections`: the plugins whose options are known; what
/// may be a secret in any other plugin's section is hidden, too.
std::vector<ConfigEntry> without_secrets(std::vector<ConfigEntry> entries, const std::vector<PluginSection>& sections);

/// The options that are needed to load the plugins.
struct EnabledPlugins {
  std::filesystem::path plugin_dir;
  std::vector<std::string> enabled;  ///< each once; what cannot be a name is left for validate_config() to report
};

EnabledPlugins enabled_plugins(const RawConfig& raw);

struct ValidatedConfig {
  Options options;                      ///< meaningful only if there are no mistakes
  std::vector<ConfigMistake> mistakes;  ///< in the order of the files and their lines, then the command line's
};

/// Validates the options. `sections`: the option tables of the enabled plugins. If a plugin has no table, as it could
/// not be loaded, its entries are not validated.
ValidatedConfig validate_config(const RawConfig& raw, const std::vector<PluginSection>& sections);

/// Returns the configuration in force after a reload of `after`, if the daemon was started with `before`.
RawConfig in_force_after_reload(const RawConfig& before, const RawConfig& after);

/// The keys of [daemon], [placement] and [nri] whose values differ, but for log-level: what a reload does not apply.
std::vector<std::string> keys_needing_restart(const RawConfig& before, const RawConfig& after);

/// Every option with its default, section by section, at most 100 columns wide.
std::string help_text(const std::vector<PluginSection>& sections);

}  // namespace topolet::config
