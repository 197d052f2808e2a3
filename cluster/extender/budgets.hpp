// PodDisruptionBudgets, counted as kube-scheduler counts them when it considers evictions.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace topolet::extender {

struct PodOnNode;

class Budgets {
 public:
  /// `objects`: PodDisruptionBudgets of policy/v1.
  explicit Budgets(const std::vector<nlohmann::json>& objects);

  /// How many of the pods, evicted one after the other, would be one too many for a budget.
  std::int64_t violations_of(const std::vector<const PodOnNode*>& pods) const;

 private:
  struct Requirement {
    std::string key;
    std::string operation;  ///< In, NotIn, Exists or DoesNotExist
    std::vector<std::string> values;
  };
  struct Budget {
    std::string name_space;
    std::vector<Requirement> selector;  ///< empty: it matches nothing
    std::int64_t allowed = 0;
    std::vector<std::string> disrupted;  ///< pods that are counted already
  };
  static bool matches(const Budget& budget, const PodOnNode& pod);

  std::vector<Budget> budgets_;
};

}  // namespace topolet::extender
