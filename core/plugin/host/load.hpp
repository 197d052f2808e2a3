// Plugins as libraries: loads them, reads what they say about themselves, and creates instances.
// A library that was opened stays mapped until the process ends.
#pragma once

#include <topolet/abi.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/plugin/call/plugin_policy.hpp"
#include "core/plugin/guard/lent_block.hpp"
#include "core/plugin/host/deprecated_capabilities.hpp"
#include "core/plugin/host/file_identity.hpp"
#include "core/plugin/host/option_table.hpp"
#include "store/plugin_state_store.hpp"

namespace boost::dll {
class shared_library;
}

namespace topolet::plugin {

/// What an instance is made with, besides its options.
struct CreateContext {
  std::shared_ptr<store::PluginStateStore> state = nullptr;  ///< where it keeps values; null: it is told that it cannot
  config::OptionValues configuration = {};                   ///< all of it but secrets, by "SECTION.KEY"
  LentGuard guard = LentGuard::kFound;                       ///< of what is shown to create()
  std::shared_ptr<const topology::Topology> machine = nullptr;  ///< to judge options by; null: not known
  topolet_purpose purpose = TOPOLET_PURPOSE_RUN;
  std::chrono::milliseconds deadline{0};  ///< after which create() is given up; 0: never
  const DeprecatedCapabilities* deprecated = &deprecated_capabilities();  ///< of which the log warns
  const ValuesByMinor* values = &kValuesByMinor;  ///< decides what a plugin of its minor is shown
};

/// A loaded library: what it says about itself, and how instances are created. Immutable.
class PluginLibrary {
 public:
  /// Loads `plugin_dir`/`name`.so. Refusals are one line that names the plugin and the file.
  static Result<PluginLibrary> load(const std::filesystem::path& plugin_dir, const std::string& name);
  /// Loads NAME.so from anywhere, whoever may write it. For tools, which run as who gives the file.
  static Result<PluginLibrary> load_file(const std::filesystem::path& file);

  const std::string& id() const { return id_; }
  const std::string& version() const { return version_; }
  const std::string& vendor() const { return vendor_; }
  const std::string& url() const { return url_; }
  const std::string& description() const { return description_; }
  std::uint32_t abi_minor() const;
  std::uint32_t default_weight() const;
  std::uint32_t abi_draft() const;
  const std::vector<config::OptionSpec>& options() const { return options_; }
  /// What the configuration knows of it.
  config::PluginSection section() const { return {id_, options_, default_weight(), description_}; }
  const std::filesystem::path& path() const { return path_; }  ///< canonical

  /// True if the file was replaced since it was loaded. The old one stays mapped, so that only a new process can run
  /// the new one.
  bool file_has_changed() const;

  /// Creates an instance. `values`: option name → value; options left out get their default, of a repeatable one there
  /// may be several. INVALID_ARGUMENT for an unknown option, a bad value or a required option without one; INTERNAL
  /// when the plugin's create() fails, with its reason.
  Result<std::shared_ptr<PluginPolicy>> create(const std::vector<std::pair<std::string, std::string>>& values,
                                               std::shared_ptr<Log> log, CreateContext context = {}) const;

 private:
  PluginLibrary() = default;
  static Result<PluginLibrary> load_resolved(const Result<std::filesystem::path>& path, const std::string& name);
  /// Reads what the library says about itself.
  Status read(const boost::dll::shared_library& library);

  const topolet_plugin_entry* entry_ = nullptr;
  std::string id_;
  std::string version_;
  std::string vendor_;
  std::string url_;
  std::string description_;
  std::vector<config::OptionSpec> options_;
  std::filesystem::path path_;
  FileIdentity file_;
};

struct LoadedLibraries {
  std::vector<PluginLibrary> libraries;  ///< in the order of their names in the list
  std::vector<Error> errors;             ///< one for each that was refused
};

}  // namespace topolet::plugin
