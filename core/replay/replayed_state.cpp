#include "core/replay/replayed_state.hpp"

#include <utility>

namespace topolet::replay {

void ReplayedState::read_line(const Json& line) {
  MutexLock lock(mutex_);
  const std::string plugin = line.at("plugin").get<std::string>();
  const StateAccess access = read_state_line(line, recorded_[plugin]);
  apply_to_known(access, recorded_[plugin]);
  apply_to_known(access, known_[plugin]);
  if (access.kind != StateAccess::Kind::kAll) answers_[{plugin, access.kind, access.key}].push_back(access);
}

void ReplayedState::forget_answers() {
  MutexLock lock(mutex_);
  answers_.clear();
}

void ReplayedState::clear() {
  MutexLock lock(mutex_);
  recorded_.clear();
  known_.clear();
  answers_.clear();
}

std::optional<StateAccess> ReplayedState::recorded(const StateAccess& access) {
  const auto found = answers_.find({access.plugin, access.kind, access.key});
  if (found == answers_.end() || found->second.empty()) return std::nullopt;
  StateAccess first = std::move(found->second.front());
  found->second.pop_front();
  return first;
}

Result<std::optional<std::string>> ReplayedState::answer(StateAccess access) {
  MutexLock lock(mutex_);
  if (const auto before = recorded(access)) {
    if (before->error) return *before->error;
    return before->value;
  }
  return known_answer(access, known_[access.plugin]);
}

Status ReplayedState::write(StateAccess access) {
  MutexLock lock(mutex_);
  if (const auto before = recorded(access); before && before->error) return *before->error;
  apply_to_known(access, known_[access.plugin]);
  return {};
}

Result<std::optional<std::string>> ReplayedState::get(const std::string& plugin, const std::string& key) {
  return answer({.kind = StateAccess::Kind::kGet, .plugin = plugin, .key = key, .value = {}});
}

Result<std::optional<std::string>> ReplayedState::next(const std::string& plugin, const std::string& after) {
  return answer({.kind = StateAccess::Kind::kNext, .plugin = plugin, .key = after, .value = {}});
}

Result<std::size_t> ReplayedState::count(const std::string& plugin) {
  const auto counted = answer({.kind = StateAccess::Kind::kCount, .plugin = plugin, .key = {}, .value = {}});
  if (!counted) return counted.error();
  return static_cast<std::size_t>(std::stoull(counted->value_or("0")));
}

Status ReplayedState::set(const std::string& plugin, const std::string& key, const std::string& value) {
  return write({.kind = StateAccess::Kind::kSet, .plugin = plugin, .key = key, .value = value});
}

Status ReplayedState::remove(const std::string& plugin, const std::string& key) {
  return write({.kind = StateAccess::Kind::kRemove, .plugin = plugin, .key = key, .value = {}});
}

}  // namespace topolet::replay
