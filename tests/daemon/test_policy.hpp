// A policy for the core's tests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/policy.hpp"

namespace topolet::testing {

/// Keeps every container inside the nodes that a function names, and binds memory to what another names.
class NodePolicy : public placement::Policy {
 public:
  using Nodes = std::function<NodeSet(const placement::PolicyRequest&)>;  ///< empty: no opinion
  explicit NodePolicy(Nodes nodes, Nodes mems = {}) : nodes_(std::move(nodes)), mems_(std::move(mems)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    const NodeSet nodes = nodes_(request);
    std::vector<placement::Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size() && !nodes.empty(); ++i) {
      if (request.candidates[i].nodes == nodes) verdicts[i] = {placement::Verdict::Kind::kScore, 50, "told to"};
    }
    return verdicts;
  }
  Result<placement::Pick> pick(const placement::PolicyRequest& /*request*/, std::size_t /*candidate*/,
                               const CpuSet& usable, std::size_t /*count*/) override {
    placement::Pick pick;
    pick.narrow = usable;
    return pick;
  }
  Result<placement::Adjustment> adjust(const placement::PolicyRequest& request,
                                       const placement::ChosenPlacement& /*chosen*/) override {
    placement::Adjustment adjustment;
    if (mems_) adjustment.mems = mems_(request);
    return adjustment;
  }

 private:
  std::string name_ = "told";
  Nodes nodes_;
  Nodes mems_;
};

}  // namespace topolet::testing
