// What plugins keep over restarts, in the state database.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "store/plugin_state_store.hpp"

namespace topolet::store {

/// A connection of its own beside the Store's, whose open() has made the table. A write is one transaction.
class PluginStateTable final : public PluginStateStore {
 public:
  static Result<std::unique_ptr<PluginStateTable>> open(const std::filesystem::path& state_directory);
  ~PluginStateTable() override;

  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) override
      TOPOLET_EXCLUDES(mutex_);
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) override
      TOPOLET_EXCLUDES(mutex_);
  Result<std::size_t> count(const std::string& plugin) override TOPOLET_EXCLUDES(mutex_);
  Status set(const std::string& plugin, const std::string& key, const std::string& value) override
      TOPOLET_EXCLUDES(mutex_);
  Status remove(const std::string& plugin, const std::string& key) override TOPOLET_EXCLUDES(mutex_);

 private:
  struct Connection;
  explicit PluginStateTable(std::unique_ptr<Connection> connection);

  Mutex mutex_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace topolet::store
