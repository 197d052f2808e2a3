#include "core/engine/state/load_ledger.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/engine/state/audit_event.hpp"
#include "core/engine/state/codec.hpp"

namespace topolet::engine {

LoadedLedger load_ledger(store::Store& store, CpuInventory cpus) {
  Ledger ledger(std::move(cpus), 0);
  const auto rows = store.allocations();
  if (!rows) return {ledger, rows.error()};
  const auto pods = store.pods();
  if (!pods) return {ledger, pods.error()};
  const auto capacities = store.capacities();
  if (!capacities) return {ledger, capacities.error()};
  const auto sizes = store.recent_sizes();
  if (!sizes) return {ledger, sizes.error()};
  const auto allowed_before = store.last_allowed();
  if (!allowed_before) return {ledger, allowed_before.error()};
  const auto generation = store.last_generation();
  if (!generation) return {ledger, generation.error()};
  const auto decision = store.last_decision();
  if (!decision) return {ledger, decision.error()};
  const auto told_of_kubelet = store.last_reason_code(std::string(to_string(AuditEvent::kKubeletStatic)));
  if (!told_of_kubelet) return {ledger, told_of_kubelet.error()};
  std::vector<Allocation> allocations;
  for (const store::AllocationRow& row : *rows) {
    Result<Allocation> allocation = decode_allocation(row);
    if (!allocation) return {ledger, allocation.error()};
    allocations.push_back(*std::move(allocation));
  }
  std::vector<Pod> known;
  for (const store::PodRow& row : *pods) {
    Result<Pod> pod = decode_pod(row);
    if (!pod) return {ledger, pod.error()};
    known.push_back(*std::move(pod));
  }
  std::vector<ReportedCapacity> reported;
  for (const store::CapacityRow& row : *capacities) {
    Result<ReportedCapacity> capacity = decode_capacity(row);
    if (!capacity) return {ledger, capacity.error()};
    reported.push_back(*std::move(capacity));
  }
  ledger = Ledger(ledger.inventory(), std::max(*generation, store.report().newest_lost_generation), *decision + 1);
  ledger.load(std::move(allocations), std::move(known), std::move(reported), decode_recent_sizes(*sizes));
  const CpuSet& allowed = ledger.inventory().allowed;
  CpuSet arrived = allowed - allowed_before->value_or(allowed);
  return {std::move(ledger), {}, *decision > 0, std::move(arrived), *told_of_kubelet};
}

std::string why_creates_are_unknown(const LoadedLedger& loaded, const store::OpenReport& report) {
  if (!loaded.has_decisions) return "the state database is new";
  return report.newest_lost_generation > 0 ? "the state database has lost its newest changes" : "";
}

}  // namespace topolet::engine
