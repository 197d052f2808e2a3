// The votes of one decision, in the order in which they count.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/placement/policy.hpp"

namespace topolet::placement {

/// Returns true if the first of two plugins wins where they want what only one can have: the one of more weight, of
/// equals the one whose id comes first in the alphabet. The order in which they are enabled does not matter.
inline bool wins_over(std::int32_t weight, std::string_view id, std::int32_t other_weight, std::string_view other_id) {
  return std::tuple(other_weight, id) < std::tuple(weight, other_id);
}

/// Sorted by wins_over(), whoever made them and from what: whoever goes through them meets the winner first.
class Votes {
 public:
  Votes() = default;
  Votes(std::vector<Vote> votes) : in_order_(std::move(votes)) {  // NOLINT: a vector in any order is as good
    std::stable_sort(in_order_.begin(), in_order_.end(), [](const Vote& a, const Vote& b) {
      return wins_over(a.weight, a.policy->name(), b.weight, b.policy->name());
    });
  }
  Votes(std::initializer_list<Vote> votes) : Votes(std::vector<Vote>(votes)) {}
  operator const std::vector<Vote>&() const { return in_order_; }  // NOLINT: they can be read as any others

  auto begin() const { return in_order_.begin(); }
  auto end() const { return in_order_.end(); }
  std::size_t size() const { return in_order_.size(); }
  bool empty() const { return in_order_.empty(); }

 private:
  std::vector<Vote> in_order_;
};

}  // namespace topolet::placement
