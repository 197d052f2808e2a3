#include "core/plugin/host/in_memory_plugin_state.hpp"

#include <algorithm>

namespace topolet::plugin {

Result<std::optional<std::string>> InMemoryPluginState::get(const std::string& plugin, const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = values_.find({plugin, key});
  if (found == values_.end()) return std::optional<std::string>();
  return std::optional(found->second);
}

Result<std::optional<std::string>> InMemoryPluginState::next(const std::string& plugin, const std::string& after) {
  MutexLock lock(mutex_);
  const auto found = values_.upper_bound({plugin, after});
  if (found == values_.end() || found->first.first != plugin) return std::optional<std::string>();
  return std::optional(found->first.second);
}

Result<std::size_t> InMemoryPluginState::count(const std::string& plugin) {
  MutexLock lock(mutex_);
  const auto is_its = [&plugin](const auto& value) { return value.first.first == plugin; };
  return static_cast<std::size_t>(std::count_if(values_.begin(), values_.end(), is_its));
}

Status InMemoryPluginState::set(const std::string& plugin, const std::string& key, const std::string& value) {
  MutexLock lock(mutex_);
  values_[{plugin, key}] = value;
  return {};
}

Status InMemoryPluginState::remove(const std::string& plugin, const std::string& key) {
  MutexLock lock(mutex_);
  values_.erase({plugin, key});
  return {};
}

}  // namespace topolet::plugin
