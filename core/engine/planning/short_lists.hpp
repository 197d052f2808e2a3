// Where to look first for a place for one of many containers that are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "core/placement/decision.hpp"
#include "core/placement/workload.hpp"

namespace topolet::engine {

/// For each kind of container the best of the candidates that the policies were last asked about. While one that is
/// alike gets as good a place among these as was left for others, they need not be asked about all candidates again.
/// Each list serves as many containers as it has candidates: with each that moves, others may become better.
class ShortLists {
 public:
  struct List {
    std::set<NodeSet::Words> nodes;  ///< of the candidates
    /// The score of the best candidate that is not in the list.
    std::int64_t best_of_others = std::numeric_limits<std::int64_t>::min();

    /// Returns true if none of the others was better than the place that `decision` found in the list.
    bool suffices(const placement::Decision& decision) const;
  };

  /// The candidates that the policies were asked about.
  enum class Asked : std::uint8_t {
    kAll,
    kSome,  ///< none of the others can be better
  };

  /// Null if no container like this one was decided on, one of the votes was lost, or the list has served enough.
  const List* take(const placement::Workload& workload);
  /// Keeps the best of the candidates, as `decision` on the container found them, for those that are like it.
  void keep(const placement::Workload& workload, const placement::Decision& decision, Asked asked);

 private:
  struct Entry {
    placement::Workload workload;
    List list;
    std::size_t served = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace topolet::engine
