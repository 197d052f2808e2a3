// Messages between a kube-scheduler and its extender: the JSON of k8s.io/kube-scheduler/extender/v1, whose fields are
// named as in Go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::extender {

/// ExtenderArgs.
struct ExtenderArgs {
  std::string pod_json;
  std::string pod_version;                   ///< uid and resourceVersion: the same text is the same pod
  std::vector<std::string_view> node_names;  ///< valid until this thread reads another body
};
/// ExtenderBindingArgs.
struct BindingArgs {
  std::string name;
  std::string name_space;
  std::string uid;
  std::string node;
};

/// Pods that a scheduler would evict from a node, or those that it may.
struct NodeVictims {
  std::string node;
  std::vector<std::string> uids;  ///< the most important one first
  std::int64_t budget_violations = 0;
};
/// ExtenderPreemptionArgs, with whole pods as victims or only with their uids.
struct PreemptionArgs {
  std::string pod_json;
  std::string pod_version;  ///< as in ExtenderArgs
  std::vector<NodeVictims> nodes;
};

/// INVALID_ARGUMENT says what is wrong, and how a scheduler is to be configured, where that is it.
Result<ExtenderArgs> read_extender_args(const std::string& body);
Result<BindingArgs> read_binding_args(const std::string& body);
Result<PreemptionArgs> read_preemption_args(const std::string& body);

/// ExtenderFilterResult.
struct FilterResult {
  std::vector<std::string_view> node_names;
  /// Names and why: pods were evicted there for this one, and more would not help.
  std::vector<std::pair<std::string_view, std::string>> failed;
  /// Names and why: preemption would not help these.
  std::vector<std::pair<std::string_view, std::string>> unresolvable;
};
std::string filter_result_text(const FilterResult& result);
std::string filter_error_text(std::string_view error);

/// HostPriorityList: scores of 0 to 10.
std::string priorities_text(const std::vector<std::pair<std::string_view, int>>& scores);

/// ExtenderPreemptionResult.
std::string preemption_result_text(const std::vector<NodeVictims>& nodes);

/// ExtenderBindingResult; empty: it is bound.
std::string binding_result_text(std::string_view error);

}  // namespace topolet::extender
