#include "cluster/extender/heartbeats.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace topolet::extender {
namespace {

/// Whoever was away for longer has not listened all that time.
constexpr std::chrono::steady_clock::duration kMostPassed = 2 * Heartbeats::kLookEvery;

}  // namespace

bool Heartbeats::note(const std::string& name, const std::string& heartbeat) {
  Node& node = nodes_[name];
  if (!heartbeat.empty() && heartbeat == node.heartbeat) return false;
  node.heartbeat = heartbeat;
  node.heard = listened_;
  return std::exchange(node.is_silent, false);
}

void Heartbeats::keep_only(const std::vector<std::string>& names) {
  const std::unordered_set<std::string> kept(names.begin(), names.end());
  std::erase_if(nodes_, [&kept](const auto& entry) { return !kept.contains(entry.first); });
}

std::vector<std::string> Heartbeats::pass(Time now, bool can_hear) {
  const auto passed = has_looked_ ? now - last_look_ : std::chrono::steady_clock::duration();
  has_looked_ = true;
  last_look_ = now;
  if (can_hear) listened_ += std::min(passed, kMostPassed);
  std::vector<std::string> silent;
  for (auto& [name, node] : nodes_) {
    if (node.is_silent || node.heartbeat.empty() || listened_ - node.heard < kPatience) continue;
    node.is_silent = true;
    silent.push_back(name);
  }
  std::sort(silent.begin(), silent.end());
  return silent;
}

bool Heartbeats::is_silent(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found != nodes_.end() && found->second.is_silent;
}

}  // namespace topolet::extender
