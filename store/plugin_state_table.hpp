// The state that plugins keep over restarts, in the state database.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "store/plugin_state_store.hpp"

namespace topolet::store {

/// Connections of its own beside the Store's, which makes the table and is the first to open the file. A value is kept
/// in memory until a thread has written it. Whoever sets it waits for that, but only for a moment: plugins have a
/// deadline, and a disk may be full, slow or gone.
class PluginStateTable final : public PluginStateStore {
 public:
  /// Also works without a file; see reopen().
  explicit PluginStateTable(const std::filesystem::path& state_directory);
  /// Writes what is left, unless the file system does not return; then the thread is left behind, which uses nothing
  /// that is destroyed.
  ~PluginStateTable() override;

  /// Another file is in the place of the one so far, or there is one now. The values go there, as far as they can still
  /// be read. Returns at once. Any thread.
  void reopen();

  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) override;
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) override;
  Result<std::size_t> count(const std::string& plugin) override;
  Status set(const std::string& plugin, const std::string& key, const std::string& value) override;
  Status remove(const std::string& plugin, const std::string& key) override;

 private:
  class Values;
  /// Shared with the thread.
  const std::shared_ptr<Values> values_;
};

}  // namespace topolet::store
