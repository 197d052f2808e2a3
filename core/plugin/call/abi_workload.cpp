#include "core/plugin/call/abi_workload.hpp"

#include <map>
#include <string_view>

#include "core/plugin/call/abi_arrays.hpp"

namespace topolet::plugin {

// The enumerators are passed as numbers; these are the places where ours and the ABI's could drift apart.
static_assert(static_cast<int>(placement::Qos::kGuaranteed) == TOPOLET_QOS_GUARANTEED);
static_assert(static_cast<int>(placement::Qos::kBurstable) == TOPOLET_QOS_BURSTABLE);
static_assert(static_cast<int>(placement::Qos::kBestEffort) == TOPOLET_QOS_BESTEFFORT);
static_assert(static_cast<int>(placement::Certainty::kTold) == TOPOLET_CERTAINTY_TOLD);
static_assert(static_cast<int>(placement::Certainty::kEstimated) == TOPOLET_CERTAINTY_ESTIMATED);
static_assert(static_cast<int>(placement::Certainty::kUnknown) == TOPOLET_CERTAINTY_UNKNOWN);
static_assert(static_cast<int>(placement::Certainty::kOfPod) == TOPOLET_CERTAINTY_OF_POD);

namespace {

/// Returns the variables as a process finds them: by name, and of those of one name the last.
std::map<std::string_view, std::string_view> canonical_env(const placement::Workload& workload) {
  std::map<std::string_view, std::string_view> variables;
  for (const auto& [name, value] : workload.env) variables[name] = value;
  return variables;
}

}  // namespace

std::int32_t qos_of(placement::Qos qos, ValueTranslator& values) {
  return values.shown(AbiValues::kQos, qos == placement::Qos::kUnknown ? placement::Qos::kBurstable : qos);
}

const topolet_demand* lend_demand(LentBlock& block, ValueTranslator& values, const placement::Demand& demand) {
  const auto* limits =
      copy_each<topolet_huge_page_limit>(block, demand.hugepage_limit_bytes, [&block](const auto& one) {
        return topolet_huge_page_limit{block.copy(one.first), one.second};
      });
  return block.copy_struct(
      topolet_demand{sizeof(topolet_demand), demand.memory_request_estimated ? 1U : 0U, demand.cpu_request_milli,
                     demand.cpu_limit_milli, demand.memory_request_bytes, demand.memory_limit_bytes, limits,
                     static_cast<std::uint32_t>(demand.hugepage_limit_bytes.size()), sizeof(topolet_huge_page_limit),
                     values.shown(AbiValues::kCertainty, demand.cpu_request_certainty), 0});
}

const topolet_workload* lend_workload(LentBlock& block, ValueTranslator& values, const placement::Workload& workload,
                                      const std::string& container_id, bool with_env) {
  return block.copy_struct(topolet_workload{
      sizeof(topolet_workload),
      workload.key.attempt,
      block.copy(workload.key.pod_uid),
      block.copy(workload.pod_name),
      block.copy(workload.pod_namespace),
      block.copy(workload.key.sandbox_id),
      block.copy(workload.key.name),
      block.copy(workload.runtime_handler),
      qos_of(workload.qos, values),
      0,
      lend_demand(block, values, workload.demand),
      block.copy(workload.kubelet_cpus),
      block.copy(workload.kubelet_mems),
      block.copy(workload.devices),
      block.copy(workload.cdi_devices),
      with_env ? block.copy_pairs(canonical_env(workload)) : topolet_kvs{nullptr, 0},
      block.copy_pairs(workload.pod_labels),
      block.copy_pairs(workload.pod_annotations),
      block.copy_pairs(workload.annotations),
      block.copy_pairs(workload.settings),
      workload.pod_demand ? lend_demand(block, values, *workload.pod_demand) : nullptr,
      block.copy(workload.pod_nodes),
      block.copy(workload.used_devices),
      block.copy_pairs(workload.tags),
      block.copy(container_id),
  });
}

const topolet_load* lend_load(LentBlock& block, const load::Load* load, const topology::Topology& topology,
                              const placement::LedgerEntries& entries) {
  if (load == nullptr || load->empty()) return nullptr;
  const topolet_node_load* of_nodes = nullptr;
  if (!load->nodes.empty()) {
    of_nodes = copy_each<topolet_node_load>(block, topology.nodes, [load](const topology::Node& node) {
      const auto known = load->nodes.find(node.os_index);
      if (known == load->nodes.end()) return topolet_node_load{-1, -1, -1};
      const auto& [effective, age, used] = known->second;
      return topolet_node_load{effective.value_or(-1), effective || used ? age.count() : -1, used.value_or(-1)};
    });
  }
  const topolet_pu_load* of_pus = nullptr;
  if (!load->cpus.empty()) {
    of_pus = copy_each<topolet_pu_load>(block, topology.pus, [load](const topology::Pu& pu) {
      const auto known = load->cpus.find(pu.os_index);
      if (known == load->cpus.end() || !known->second.effective_milli) return topolet_pu_load{-1, -1};
      return topolet_pu_load{*known->second.effective_milli, known->second.age.count()};
    });
  }
  const topolet_entry_load* of_entries = nullptr;
  if (!load->containers.empty()) {
    of_entries = copy_each<topolet_entry_load>(block, entries, [load](const placement::LedgerEntry& entry) {
      const auto known = load->containers.find(entry.container_id);
      if (known == load->containers.end()) return topolet_entry_load{-1, -1, -1, 0};
      const auto& pressure = known->second.psi_some_permille;
      return topolet_entry_load{known->second.cpu_milli, known->second.age.count(),
                                pressure && !known->second.is_throttled ? static_cast<std::int32_t>(*pressure) : -1, 0};
    });
  }
  return block.copy_struct(topolet_load{sizeof(topolet_load), 0, of_nodes, of_pus, of_entries,
                                        sizeof(topolet_node_load), sizeof(topolet_pu_load), sizeof(topolet_entry_load),
                                        0, load->measured_for ? load->measured_for->count() : -1});
}

}  // namespace topolet::plugin
