#include "cluster/extender/budgets.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/api/json_fields.hpp"
#include "cluster/extender/victims.hpp"

namespace topolet::extender {

using api::field;
using api::list_field;
using api::map_field;
using api::text_field;
using nlohmann::json;

Budgets::Budgets(const std::vector<json>& objects) {
  for (const json& object : objects) {
    Budget budget;
    budget.name_space = text_field(object, "metadata", "namespace");
    const json& allowed = field(object, "status", "disruptionsAllowed");
    budget.allowed = allowed.is_number_integer() ? allowed.get<std::int64_t>() : 0;
    for (const auto& [pod, time] : map_field(object, "status", "disruptedPods")) budget.disrupted.push_back(pod);
    const json& selector = field(object, "spec", "selector");
    for (const auto& [key, value] : map_field(selector, "matchLabels"))
      budget.selector.push_back({key, "In", {value.is_string() ? value.get<std::string>() : ""}});
    for (const json& expression : list_field(selector, "matchExpressions")) {
      Requirement requirement{text_field(expression, "key"), text_field(expression, "operator"), {}};
      for (const json& value : list_field(expression, "values")) {
        if (value.is_string()) requirement.values.push_back(value.get<std::string>());
      }
      budget.selector.push_back(std::move(requirement));
    }
    budgets_.push_back(std::move(budget));
  }
}

bool Budgets::matches(const Budget& budget, const PodOnNode& pod) {
  if (budget.selector.empty() || budget.name_space != pod.name_space) return false;
  const auto meets = [&](const Requirement& requirement) {
    const auto label = pod.labels.find(requirement.key);
    const bool has = label != pod.labels.end();
    const auto& values = requirement.values;
    const bool is_among = has && std::find(values.begin(), values.end(), label->second) != values.end();
    if (requirement.operation == "In") return is_among;
    if (requirement.operation == "NotIn") return !is_among;
    return requirement.operation == "Exists" ? has : requirement.operation == "DoesNotExist" && !has;
  };
  return std::all_of(budget.selector.begin(), budget.selector.end(), meets);
}

std::int64_t Budgets::violations_of(const std::vector<const PodOnNode*>& pods) const {
  std::vector<std::int64_t> left;
  for (const Budget& budget : budgets_) left.push_back(budget.allowed);
  std::int64_t violations = 0;
  for (const PodOnNode* pod : pods) {
    bool violates = false;
    for (std::size_t i = 0; i < budgets_.size(); ++i) {
      const auto& disrupted = budgets_[i].disrupted;
      const bool is_counted = std::find(disrupted.begin(), disrupted.end(), pod->name) != disrupted.end();
      if (is_counted || !matches(budgets_[i], *pod)) continue;
      violates = --left[i] < 0 || violates;
    }
    violations += violates ? 1 : 0;
  }
  return violations;
}

}  // namespace topolet::extender
