// The state that plugins keep over restarts: the interface of whoever keeps it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/base/result.hpp"

namespace topolet::store {

/// Values by plugin and key; both are any bytes. Safe from any thread. Whoever calls has checked the bounds of
/// <topolet/state.h>.
class PluginStateStore {
 public:
  PluginStateStore() = default;
  virtual ~PluginStateStore() = default;
  PluginStateStore(const PluginStateStore&) = delete;
  PluginStateStore& operator=(const PluginStateStore&) = delete;

  /// Nothing if there is no such key.
  virtual Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) = 0;
  /// The first key after `after`, in the order of their bytes; nothing at the end.
  virtual Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) = 0;
  /// How many keys there are.
  virtual Result<std::size_t> count(const std::string& plugin) = 0;
  virtual Status set(const std::string& plugin, const std::string& key, const std::string& value) = 0;
  /// OK also if there is no such key.
  virtual Status remove(const std::string& plugin, const std::string& key) = 0;
};

}  // namespace topolet::store
