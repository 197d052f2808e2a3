// Plugins as libraries: loads them, reads what they say about themselves, and creates instances.
// A library that was opened stays mapped until the process ends.
#pragma once

#include <topolet/abi.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/plugin/call/plugin_policy.hpp"
#include "core/plugin/guard/lent_block.hpp"
#include "core/plugin/host/file_identity.hpp"
#include "core/plugin/host/option_table.hpp"
#include "store/plugin_state_store.hpp"

namespace boost::dll {
class shared_library;
}

namespace topolet::plugin {

/// A loaded library: what it says about itself, and how instances are created. Immutable.
class PluginLibrary {
 public:
  /// Loads `plugin_dir`/`name`.so. Refusals are one line that names the plugin and the file.
  static Result<PluginLibrary> load(const std::filesystem::path& plugin_dir, const std::string& name);
  /// Loads NAME.so from anywhere, whoever may write it. For tools, which run as who gives the file.
  static Result<PluginLibrary> load_file(const std::filesystem::path& file);

  const std::string& id() const { return id_; }
  const std::string& version() const { return version_; }
  std::uint32_t abi_minor() const;
  std::uint32_t default_weight() const;
  std::uint32_t abi_draft() const;
  const std::vector<config::OptionSpec>& options() const { return options_; }
  const std::filesystem::path& path() const { return path_; }  ///< canonical

  /// True if the file was replaced since it was loaded. The old one stays mapped, so that only a new process can run
  /// the new one.
  bool file_has_changed() const;

  /// Creates an instance. `values`: option name → value; options left out get their default.
  /// INVALID_ARGUMENT for an unknown option or a bad value; INTERNAL when the plugin's create() fails, with its reason.
  /// `state`: where it keeps values; without, the plugin is told that there is none. `others`: what other plugins are
  /// made with, by "PLUGIN.OPTION". `guard`: of what is shown to create(). `machine`: to judge options by; null: not
  /// known.
  Result<std::shared_ptr<PluginPolicy>> create(const std::vector<std::pair<std::string, std::string>>& values,
                                               std::shared_ptr<Log> log,
                                               std::shared_ptr<store::PluginStateStore> state = nullptr,
                                               const std::map<std::string, std::string>& others = {},
                                               LentGuard guard = LentGuard::kCompared,
                                               std::shared_ptr<const topology::Topology> machine = nullptr) const;

 private:
  PluginLibrary() = default;
  static Result<PluginLibrary> load_resolved(const Result<std::filesystem::path>& path, const std::string& name);
  /// Reads what the library says about itself.
  Status read(const boost::dll::shared_library& library);

  const topolet_plugin_entry* entry_ = nullptr;
  std::string id_;
  std::string version_;
  std::vector<config::OptionSpec> options_;
  std::filesystem::path path_;
  FileIdentity file_;
};

struct LoadedLibraries {
  std::vector<PluginLibrary> libraries;  ///< in the order of their names in the list
  std::vector<Error> errors;             ///< one for each that was refused
};

}  // namespace topolet::plugin
