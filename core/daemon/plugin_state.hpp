// Plugins' state, kept in the state database.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "core/plugin/state_store.hpp"
#include "store/plugin_values.hpp"

namespace topolet {

class StateInDatabase final : public StateStore {
 public:
  explicit StateInDatabase(std::unique_ptr<PluginValues> values) : values_(std::move(values)) {}

  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) override {
    return values_->get(plugin, key);
  }
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) override {
    return values_->next(plugin, after);
  }
  Result<std::size_t> count(const std::string& plugin) override { return values_->count(plugin); }
  Status set(const std::string& plugin, const std::string& key, const std::string& value) override {
    return values_->set(plugin, key, value);
  }
  Status remove(const std::string& plugin, const std::string& key) override { return values_->remove(plugin, key); }

 private:
  const std::unique_ptr<PluginValues> values_;
};

}  // namespace topolet
