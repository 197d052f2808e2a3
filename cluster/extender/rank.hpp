// The nodes that pass for a pod, and their ranking.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/extender/demand.hpp"
#include "cluster/extender/wire.hpp"
#include "cluster/extender/zone_book.hpp"

namespace topolet::extender {

/// Nodes that cannot take the pod now are refused; those that publish nothing pass, unless it wants a single zone.
FilterResult filter_nodes(const ZoneBook& book, const Demand& demand, const std::vector<std::string_view>& names);

/// Scores nodes from 0 to 10: fewest zones first, and among nodes with equally many, the strategy's preference, and
/// then the share of the zones' CPUs that can be used at present. Among several nodes the best of those with one zone
/// has 10 and the worst 7, those with two zones have 6 to 4, those with more 3 to 1; nodes that do not fit, or are not
/// known, have 0. With the policy any, the number of zones does not count.
std::vector<std::pair<std::string_view, int>> score_nodes(const ZoneBook& book, const Demand& demand,
                                                          const std::vector<std::string_view>& names);

}  // namespace topolet::extender
