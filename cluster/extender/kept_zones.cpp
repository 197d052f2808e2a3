#include "cluster/extender/kept_zones.hpp"

#include <algorithm>

namespace topolet::extender {

void KeptZones::keep(Kept kept) {
  std::vector<Kept>& all = by_node_[kept.node];
  std::erase_if(all, [&](const Kept& before) { return before.uid == kept.uid; });
  all.push_back(std::move(kept));
}

const std::vector<Kept>& KeptZones::on(std::string_view node) const {
  static const std::vector<Kept> kNone;
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? kNone : found->second;
}

bool KeptZones::has(std::string_view node, const std::string& uid) const {
  const std::vector<Kept>& all = on(node);
  return std::any_of(all.begin(), all.end(), [&](const Kept& kept) { return kept.uid == uid; });
}

bool KeptZones::any_for_others(std::string_view node, const Demand& demand) const {
  const std::vector<Kept>& all = on(node);
  return std::any_of(all.begin(), all.end(), [&](const Kept& kept) { return comes_before(kept, demand); });
}

void KeptZones::nominate(const std::string& uid, const std::string& node) {
  for (auto& [name, all] : by_node_) {
    for (Kept& kept : all) kept.is_nominated = kept.is_nominated || (kept.uid == uid && kept.node == node);
  }
  erase(uid, node);
}

void KeptZones::drop(const std::string& uid) { erase(uid, {}); }

void KeptZones::erase(const std::string& uid, std::string_view but_node) {
  for (auto& [name, all] : by_node_) {
    if (name == but_node) continue;
    if (std::erase_if(all, [&](const Kept& kept) { return kept.uid == uid; }) > 0) freed_.insert(name);
  }
  std::erase_if(by_node_, [](const auto& entry) { return entry.second.empty(); });
}

std::vector<Kept> KeptZones::all() const {
  std::vector<Kept> all;
  for (const auto& [name, kept] : by_node_) all.insert(all.end(), kept.begin(), kept.end());
  return all;
}

std::vector<Kept> KeptZones::of(const std::string& uid) const {
  std::vector<Kept> own = all();
  std::erase_if(own, [&](const Kept& kept) { return kept.uid != uid; });
  return own;
}

}  // namespace topolet::extender
