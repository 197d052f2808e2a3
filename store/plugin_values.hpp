// What plugins keep over restarts, in the state database.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/base/mutex.hpp"
#include "core/base/result.hpp"

namespace topolet {

/// Values by plugin and key; both are any bytes. A connection of its own beside the Store's, whose open() has made the
/// table. Safe from any thread; a write is one transaction.
class PluginValues {
 public:
  static Result<std::unique_ptr<PluginValues>> open(const std::filesystem::path& state_directory);
  ~PluginValues();
  PluginValues(const PluginValues&) = delete;
  PluginValues& operator=(const PluginValues&) = delete;

  /// Nothing if there is no such key.
  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) TOPOLET_EXCLUDES(mutex_);
  /// The first key after `after`, in the order of their bytes; nothing at the end.
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) TOPOLET_EXCLUDES(mutex_);
  /// How many keys there are.
  Result<std::size_t> count(const std::string& plugin) TOPOLET_EXCLUDES(mutex_);
  Status set(const std::string& plugin, const std::string& key, const std::string& value) TOPOLET_EXCLUDES(mutex_);
  /// OK also if there is no such key.
  Status remove(const std::string& plugin, const std::string& key) TOPOLET_EXCLUDES(mutex_);

 private:
  struct Connection;
  explicit PluginValues(std::unique_ptr<Connection> connection);

  Mutex mutex_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace topolet
