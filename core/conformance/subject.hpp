// The plugin that is tried. Only ever made in a child process.
#pragma once

#include <topolet/abi.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.hpp"
#include "core/conformance/instance_proxy.hpp"
#include "core/plugin/load.hpp"
#include "core/plugin/plugin_host.hpp"

namespace topolet {

/// An instance that sees what a later host would show.
struct ProxiedInstance {
  std::unique_ptr<InstanceProxy> proxy;
  std::shared_ptr<PluginPolicy> policy;
};

/// What create() did, as the plugin did it.
struct RawCreation {
  std::unique_ptr<PluginHost> host;
  std::int32_t status = TOPOLET_FAILED;
  const topolet_instance* instance = nullptr;
  bool touched_instance = false;  ///< it wrote to *instance
  std::string error;              ///< what it gave to the sink
  std::optional<std::string> thrown;
};

class Subject {
 public:
  using OptionValues = std::vector<std::pair<std::string, std::string>>;

  /// As the daemon loads it, with the file's directory as plugin-dir.
  static Result<Subject> load(const std::filesystem::path& file);

  const PluginLibrary& library() const { return library_; }
  const topolet_plugin_entry& entry() const { return *entry_; }

  /// As the daemon does it; each instance with an empty state of its own.
  Result<std::shared_ptr<PluginPolicy>> create(const OptionValues& values = {}) const;
  Result<ProxiedInstance> create_proxied() const;
  /// Past the daemon's checks. Whoever calls destroys the instance, before the host.
  RawCreation create_raw(const std::vector<topolet_kv>& options) const;

 private:
  Subject(PluginLibrary library, const topolet_plugin_entry* entry) : library_(std::move(library)), entry_(entry) {}

  PluginLibrary library_;
  const topolet_plugin_entry* entry_;
};

}  // namespace topolet
