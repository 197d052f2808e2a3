// Small machines and requests on them, as a plugin sees them.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace topolet::numa {

inline sdk::Set set_of(const std::vector<std::uint32_t>& indices) {
  sdk::Set set;
  for (const std::uint32_t index : indices) set.insert(index);
  return set;
}

struct Shape {
  std::uint32_t nodes = 1;
  std::uint32_t l3s = 1;    ///< per node
  std::uint32_t cores = 4;  ///< per L3
  std::uint32_t threads = 2;
  /// OS index of the n-th hardware thread in the order node, L3, core, thread.
  std::function<std::uint32_t(std::uint32_t)> os_index = [](std::uint32_t n) { return n; };
  /// OS index of the n-th node.
  std::function<std::uint32_t(std::uint32_t)> node_index = [](std::uint32_t n) { return n; };
};

/// Nodes 10 apart from themselves and 21 from each other.
class Machine {
 public:
  explicit Machine(const Shape& shape) {
    std::uint32_t thread = 0;
    for (std::uint32_t node = 0; node < shape.nodes; ++node) {
      for (std::uint32_t l3 = 0; l3 < shape.l3s; ++l3) {
        for (std::uint32_t core = 0; core < shape.cores; ++core) {
          cores.emplace_back();
          for (std::uint32_t t = 0; t < shape.threads; ++t) {
            add(shape.os_index(thread++), node, node * shape.l3s + l3);
          }
        }
      }
      node_indices.push_back(shape.node_index(node));
    }
  }

  /// A core of one thread; `node` may be TOPOLET_NONE.
  void add_core(std::uint32_t os_index, std::uint32_t node, std::uint32_t l3) {
    cores.emplace_back();
    add(os_index, node, l3);
  }

  sdk::Set cpus_of(std::uint32_t node) const {
    sdk::Set set;
    for (const topolet_pu& pu : pus) {
      if (pu.node == node) set.insert(pu.os_index);
    }
    return set;
  }

  std::vector<topolet_pu> pus;  // in the order of their making; the ABI's order by OS index is made in Request
  std::vector<sdk::Set> cores;
  std::vector<std::uint32_t> node_indices;

 private:
  void add(std::uint32_t os_index, std::uint32_t node, std::uint32_t l3) {
    const auto core = static_cast<std::uint32_t>(cores.size() - 1);
    pus.push_back({os_index, core, l3, TOPOLET_NONE, node, 0});
    cores.back().insert(os_index);
  }
};

/// A request for `exclusive` CPUs (0: a shared workload) on a machine where `taken` is in other hands.
class Request {
 public:
  Request(const Machine& machine, std::uint32_t exclusive, const sdk::Set& taken = {})
      : machine_(machine), taken_(taken) {
    std::sort(machine_.pus.begin(), machine_.pus.end(),
              [](const topolet_pu& a, const topolet_pu& b) { return a.os_index < b.os_index; });
    for (const sdk::Set& core : machine_.cores) core_views_.push_back(core.view());
    topology_.struct_size = sizeof(topology_);
    topology_.distances_known = 1;
    topology_.pus = machine_.pus.data();
    topology_.pu_count = static_cast<std::uint32_t>(machine_.pus.size());
    topology_.pu_stride = sizeof(topolet_pu);
    topology_.cores = core_views_.data();
    topology_.core_count = core_views_.size();
    view_.struct_size = sizeof(view_);
    view_.exclusive = exclusive > 0 ? 1 : 0;
    view_.exclusive_cpus = exclusive;
    view_.candidate_stride = sizeof(topolet_candidate);
    view_.topology = &topology_;
    demand_.struct_size = sizeof(demand_);
    workload_.struct_size = sizeof(workload_);
    workload_.demand = &demand_;
    ledger_.struct_size = sizeof(ledger_);
    view_.workload = &workload_;
    view_.ledger = &ledger_;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// The machine tells kinds of CPUs, these, the slowest first.
  Request& kinds(const std::vector<sdk::Set>& cpus) {
    kinds_.clear();
    for (const sdk::Set& kind : cpus) {
      kinds_.push_back({static_cast<std::uint32_t>(kinds_.size()), 0, sets_.emplace_back(kind).view()});
    }
    topology_.cpu_kinds = kinds_.data();
    topology_.cpu_kind_count = static_cast<std::uint32_t>(kinds_.size());
    topology_.cpu_kind_stride = sizeof(topolet_cpu_kind);
    return *this;
  }

  /// Adds the candidate of these nodes, by position. `distance_apart`: between two different ones.
  Request& candidate(const std::vector<std::uint32_t>& nodes, std::uint32_t distance_apart = 21) {
    sdk::Set cpus;
    sdk::Set node_set;
    for (const std::uint32_t node : nodes) {
      cpus |= machine_.cpus_of(node);
      node_set.insert(machine_.node_indices[node]);
    }
    const auto width = static_cast<std::uint32_t>(nodes.size());
    return candidate(node_set, cpus, width * 10 + width * (width - 1) * distance_apart);
  }

  Request& candidate(const sdk::Set& nodes, const sdk::Set& cpus, std::uint32_t distance) {
    const topolet_set nodes_view = sets_.emplace_back(nodes).view();
    const topolet_set cpus_view = sets_.emplace_back(cpus).view();
    const topolet_set free_view = sets_.emplace_back(cpus - taken_).view();
    candidates_.push_back({TOPOLET_DOMAIN_NODE, 1, nodes_view, cpus_view, free_view, free_view, distance, 0});
    view_.candidates = candidates_.data();
    view_.candidate_count = static_cast<std::uint32_t>(candidates_.size());
    return *this;
  }

  /// The container has these CPUs, and could be better off elsewhere.
  Request& moves_from(const sdk::Set& had) {
    view_.occasion = TOPOLET_OCCASION_MOVE;
    view_.had_cpus = sets_.emplace_back(had).view();
    return *this;
  }

  const topolet_request& view() const { return view_; }

  /// For the last candidate.
  topolet_pick_request pick() const {
    return {sizeof(topolet_pick_request),
            view_.candidate_count - 1,
            &view_,
            candidates_.back().usable,
            {},
            view_.exclusive_cpus,
            0};
  }

 private:
  Machine machine_;
  sdk::Set taken_;
  std::deque<sdk::Set> sets_;
  std::vector<topolet_set> core_views_;
  std::vector<topolet_cpu_kind> kinds_;
  std::vector<topolet_candidate> candidates_;
  topolet_topology topology_{};
  topolet_demand demand_{};
  topolet_workload workload_{};
  topolet_ledger ledger_{};
  topolet_request view_{};
};

}  // namespace topolet::numa
