// Zones that are kept for pods for which others are evicted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/extender/demand.hpp"
#include "cluster/extender/resources.hpp"

namespace topolet::extender {

/// Other pods of a lower or the same priority do not get them, among them those that replace the evicted ones.
struct Kept {
  std::string uid;
  std::string name;
  std::string name_space;
  std::string node;
  std::int64_t priority = 0;
  std::vector<std::pair<std::uint32_t, Amounts>> taken;  ///< by zone's os_index
  std::chrono::steady_clock::time_point since{};
  std::chrono::steady_clock::time_point until{};
  bool is_nominated = false;              ///< the scheduler was seen to have chosen this node
  std::vector<std::string> victims = {};  ///< uids: who is to be evicted there for it
};

/// A plain value.
class KeptZones {
 public:
  /// Instead of what was kept for the pod on that node before.
  void keep(Kept kept);
  bool has(std::string_view node, const std::string& uid) const;
  /// Notes that the scheduler has chosen the node: zones on other nodes are not kept for the pod any more.
  void nominate(const std::string& uid, const std::string& node);
  void drop(const std::string& uid);
  void drop_node(const std::string& node) { by_node_.erase(node); }

  /// Nodes where something is not kept any more, since this was asked last.
  std::set<std::string> take_freed() { return std::exchange(freed_, {}); }

  const std::vector<Kept>& on(std::string_view node) const;
  std::vector<Kept> all() const;
  std::vector<Kept> of(const std::string& uid) const;

  /// Returns true if the kept zones count against the demand, as a scheduler counts nominated pods.
  static bool comes_before(const Kept& kept, const Demand& demand) {
    return kept.uid != demand.uid && kept.priority >= demand.priority;
  }
  bool any_for_others(std::string_view node, const Demand& demand) const;

 private:
  void erase(const std::string& uid, std::string_view but_node);

  std::map<std::string, std::vector<Kept>, std::less<>> by_node_;
  std::set<std::string> freed_;
};

}  // namespace topolet::extender
