// A policy that likes few nodes, and the rules that permit to move everybody there.
#pragma once

#include <string>
#include <vector>

#include "core/placement/placement_rules.hpp"
#include "tests/engine/crowds.hpp"

namespace topolet::engine {

/// Scores the fewer nodes, the higher.
class NarrowPolicy : public LeastAskedPolicy {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    std::vector<placement::Verdict> verdicts;
    for (const placement::Candidate& candidate : request.candidates) {
      const auto nodes = static_cast<std::int32_t>(candidate.nodes.size());
      verdicts.push_back({placement::Verdict::Kind::kScore, 100 - 30 * nodes, "few nodes"});
    }
    return verdicts;
  }

 private:
  std::string name_ = "narrow";
};

inline placement::PlacementRules healing_all() {
  placement::PlacementRules rules;
  rules.heal = placement::HealRule::kAll;
  return rules;
}

}  // namespace topolet::engine
