#include "core/engine/planning/fits.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace topolet::engine {
namespace {

/// In no reserved namespace, and nobody's key.
placement::Workload new_container(std::uint32_t cpus) {
  placement::Workload workload;
  workload.key = {"topolet fits", "topolet fits", 0, ""};
  workload.pod_name = "fits";
  workload.pod_namespace = "topolet fits";
  workload.qos = placement::Qos::kGuaranteed;
  workload.demand.cpu_request_milli = workload.demand.cpu_limit_milli = std::int64_t{cpus} * 1000;
  return workload;
}

class Computation {
 public:
  Computation(const Placer& placer, const Ledger& ledger) : placer_(placer), ledger_(ledger), after_(ledger) {
    fits_.generation = ledger.generation();
  }

  void place(placement::Workload workload) {
    if (is_booked(workload.key)) return;
    NodeSet& nodes_of_pod = nodes_of_pod_[workload.key.pod_uid];
    if (nodes_of_pod.empty()) nodes_of_pod = ledger_.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
    workload.pod_nodes = nodes_of_pod;
    const Plan plan = plan_of(workload, {});
    if (plan.decision.denied) return fits_.unplaced.push_back({workload.key, plan.decision.reason});
    if (nodes_of_pod.empty()) nodes_of_pod = plan.decision.nodes;
    after_.assume(allocation_of(workload, plan.decision));
    for (const Move& move : plan.moves) after_.assume(allocation_of(move.workload, move.decision));
  }

  Fits finish() {
    for (const topology::Node& node : placer_.topology()->nodes) {
      if (node.memory_only) continue;
      fits_.nodes.push_back({node.os_index, most_on(node)});
    }
    return std::move(fits_);
  }

 private:
  bool is_booked(const placement::ContainerKey& key) const {
    const auto& allocations = ledger_.allocations();
    return std::any_of(allocations.begin(), allocations.end(), [&](const auto& entry) {
      return entry.first.pod_uid == key.pod_uid && entry.first.name == key.name;
    });
  }

  Plan plan_of(const placement::Workload& workload, const Placer::Constraints& constraints) {
    Plan plan = placer_.plan(after_, workload, constraints);
    fits_.lost_votes = fits_.lost_votes || !plan.decision.lost_votes.empty() ||
                       std::any_of(plan.moves.begin(), plan.moves.end(),
                                   [](const Move& move) { return !move.decision.lost_votes.empty(); });
    return plan;
  }

  bool gets(const topology::Node& node, std::uint32_t cpus) {
    Placer::Constraints here;
    here.within_nodes = NodeSet{node.os_index};
    const placement::Decision decision = plan_of(new_container(cpus), here).decision;
    const placement::Placement& placement = decision.placement;
    return !decision.denied && !decision.conflict && placement.mode == placement::Mode::kExclusive &&
           placement.cpus.size() == cpus && placement.cpus.is_subset_of(node.cpus);
  }

  /// Most often it gets all that are free. Else policies look at whole cores: they may grant only multiples of a core's
  /// threads, or need the rest of a core too. So it is searched among multiples, of which it gets each that is less
  /// than one that it gets, and then in the gap above the largest.
  std::uint32_t most_on(const topology::Node& node) {
    const CpuSet& pool = after_.pool();
    const auto limit =
        static_cast<std::uint32_t>(std::min((pool & node.cpus).size(), spare_cpus(pool, placer_.rules())));
    if (limit == 0 || gets(node, limit)) return limit;
    const std::uint32_t step = threads_of_a_core(node);
    std::uint32_t got = 0;  // in steps
    std::uint32_t too_many = (limit - 1) / step + 1;
    while (too_many - got > 1) {
      const std::uint32_t middle = got + (too_many - got) / 2;
      (gets(node, middle * step) ? got : too_many) = middle;
    }
    for (std::uint32_t more = std::min(limit, (got + 1) * step) - 1; more > got * step; --more) {
      if (gets(node, more)) return more;
    }
    return got * step;
  }

  std::uint32_t threads_of_a_core(const topology::Node& node) const {
    std::size_t most = 1;
    for (const CpuSet& core : placer_.topology()->cores) {
      if (core.intersects(node.cpus)) most = std::max(most, core.size());
    }
    return static_cast<std::uint32_t>(most);
  }

  const Placer& placer_;
  const Ledger& ledger_;
  Ledger after_;  ///< with the pending containers
  std::map<std::string, NodeSet> nodes_of_pod_;
  Fits fits_;
};

}  // namespace

Fits compute_fits(const Placer& placer, const Ledger& ledger, const std::vector<placement::Workload>& pending) {
  Computation computation(placer, ledger);
  for (const placement::Workload& workload : pending) computation.place(workload);
  return computation.finish();
}

}  // namespace topolet::engine
