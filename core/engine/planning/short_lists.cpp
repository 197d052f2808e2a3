#include "core/engine/planning/short_lists.hpp"

#include <algorithm>
#include <tuple>

namespace topolet::engine {
namespace {

/// Returns true if the same places are likely to be the best for both. Names and labels do not matter.
bool are_alike(const placement::Workload& a, const placement::Workload& b) {
  const auto what_counts = [](const placement::Workload& workload) {
    return std::tie(workload.qos, workload.demand, workload.settings, workload.pod_namespace, workload.runtime_handler,
                    workload.kubelet_cpus, workload.kubelet_mems, workload.devices, workload.cdi_devices,
                    workload.used_devices, workload.pod_demand, workload.pod_nodes);
  };
  return what_counts(a) == what_counts(b);
}

}  // namespace

bool ShortLists::List::suffices(const placement::Decision& decision) const {
  return !decision.denied && decision.lost_votes.empty() && !decision.verdicts.best.empty() &&
         decision.verdicts.best.front().score >= best_of_others;
}

const ShortLists::List* ShortLists::take(const placement::Workload& workload) {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& known) { return are_alike(known.workload, workload); });
  if (entry == entries_.end() || entry->served == entry->list.nodes.size()) return nullptr;
  ++entry->served;
  return &entry->list;
}

void ShortLists::keep(const placement::Workload& workload, const placement::Decision& decision, Asked asked) {
  std::erase_if(entries_, [&](const Entry& known) { return are_alike(known.workload, workload); });
  if (decision.denied || !decision.lost_votes.empty()) return;
  List list;
  for (const placement::RankedNodes& ranked : decision.best_nodes) {
    if (list.nodes.size() == placement::kBestNodes - 1) {
      list.best_of_others = ranked.sum;
      break;
    }
    list.nodes.insert(ranked.nodes.words());
  }
  if (asked == Asked::kSome && !decision.verdicts.best.empty())
    list.best_of_others = std::max(list.best_of_others, decision.verdicts.best.front().score);
  entries_.push_back({workload, std::move(list)});
}

}  // namespace topolet::engine
