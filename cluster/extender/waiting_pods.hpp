// Pods for which no node had a zone, and which of them a node that has more by now could take.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/extender/demand.hpp"
#include "cluster/extender/zone_book.hpp"

namespace topolet::extender {

/// A plain value. A pod whose scheduler has not asked for it since it was woken is not woken again: it is gone, or will
/// be asked for.
class WaitingPods {
 public:
  using Time = ZoneBook::Time;

  /// Schedulers try a pod again after five minutes in any case: after this it is gone.
  static constexpr std::chrono::minutes kLongest{6};

  /// Notes that no node had a zone for the pod; these had one that is too small, or none.
  void reject(const Demand& demand, const std::vector<std::string_view>& nodes, Time now);
  /// It has found a node.
  void forget(const std::string& uid) { pods_.erase(uid); }
  void clear() { pods_.clear(); }

  /// Looks at some of the nodes, takes these out of `grown`, and returns the first that one of the pods fits on. Nodes
  /// that no scheduler has asked for may be none for a pod, unless they were not there then.
  std::optional<std::string> find_fit(const ZoneBook& book, std::map<std::string, Growth>& grown, Time now);
  /// All of them: whoever changes a Node wakes all.
  void note_woken();
  std::size_t size() const { return pods_.size(); }

 private:
  struct Pod {
    Demand demand;
    std::vector<bool> nodes;  ///< by number: it was rejected for this one; those beyond the end: it was not
    Time seen{};
    bool is_woken = false;
  };
  std::size_t number_of(std::string_view node);

  std::unordered_map<std::string, Pod> pods_;                ///< by uid
  std::map<std::string, std::size_t, std::less<>> numbers_;  ///< of nodes that pods were rejected for
};

}  // namespace topolet::extender
