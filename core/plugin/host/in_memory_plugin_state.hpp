// Keeps the values of plugins without a database.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "store/plugin_state_store.hpp"

namespace topolet::plugin {

/// Keeps it as long as it lives.
class InMemoryPluginState final : public store::PluginStateStore {
 public:
  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) override;
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) override;
  Result<std::size_t> count(const std::string& plugin) override;
  Status set(const std::string& plugin, const std::string& key, const std::string& value) override;
  Status remove(const std::string& plugin, const std::string& key) override;

 private:
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::string> values_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::plugin
