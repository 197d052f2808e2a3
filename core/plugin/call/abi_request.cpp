#include "core/plugin/call/abi_request.hpp"

#include <utility>

#include "core/placement/node_demand.hpp"

namespace topolet::plugin {

// The enumerators are passed as numbers; these are the places where ours and the ABI's could drift apart.
static_assert(static_cast<int>(topology::DomainKind::kNode) == TOPOLET_DOMAIN_NODE);
static_assert(static_cast<int>(topology::DomainKind::kDie) == TOPOLET_DOMAIN_DIE);
static_assert(static_cast<int>(topology::DomainKind::kPackage) == TOPOLET_DOMAIN_PACKAGE);
static_assert(static_cast<int>(topology::DomainKind::kMachine) == TOPOLET_DOMAIN_MACHINE);
static_assert(static_cast<int>(placement::Qos::kGuaranteed) == TOPOLET_QOS_GUARANTEED);
static_assert(static_cast<int>(placement::Qos::kBurstable) == TOPOLET_QOS_BURSTABLE);
static_assert(static_cast<int>(placement::Qos::kBestEffort) == TOPOLET_QOS_BESTEFFORT);
static_assert(static_cast<int>(placement::Mode::kExclusive) == TOPOLET_MODE_EXCLUSIVE);
static_assert(static_cast<int>(placement::Mode::kShared) == TOPOLET_MODE_SHARED);
static_assert(static_cast<int>(placement::Mode::kReserved) == TOPOLET_MODE_RESERVED);
static_assert(static_cast<int>(placement::Mode::kForeign) == TOPOLET_MODE_FOREIGN);
static_assert(static_cast<int>(topology::CacheKind::kUnified) == TOPOLET_CACHE_UNIFIED);
static_assert(static_cast<int>(topology::CacheKind::kData) == TOPOLET_CACHE_DATA);
static_assert(static_cast<int>(topology::CacheKind::kInstruction) == TOPOLET_CACHE_INSTRUCTION);
static_assert(static_cast<int>(topology::OsDeviceKind::kBlock) == TOPOLET_OS_DEVICE_BLOCK);
static_assert(static_cast<int>(topology::OsDeviceKind::kGpu) == TOPOLET_OS_DEVICE_GPU);
static_assert(static_cast<int>(topology::OsDeviceKind::kNetwork) == TOPOLET_OS_DEVICE_NETWORK);
static_assert(static_cast<int>(topology::OsDeviceKind::kOpenFabrics) == TOPOLET_OS_DEVICE_OPENFABRICS);
static_assert(static_cast<int>(topology::OsDeviceKind::kDma) == TOPOLET_OS_DEVICE_DMA);
static_assert(static_cast<int>(topology::OsDeviceKind::kCoprocessor) == TOPOLET_OS_DEVICE_COPROCESSOR);
static_assert(static_cast<int>(topology::OsDeviceKind::kOther) == TOPOLET_OS_DEVICE_OTHER);
static_assert(topology::kNoPosition == TOPOLET_NONE);

namespace {

template <class T>
std::uint32_t count_of(const std::vector<T>& items) {
  return static_cast<std::uint32_t>(items.size());
}

std::vector<topolet_set> sets_of(const std::vector<CpuSet>& sets) {
  std::vector<topolet_set> views;
  views.reserve(sets.size());
  for (const CpuSet& set : sets) views.push_back(view_of(set));
  return views;
}

std::vector<topolet_str> views_of(const std::vector<std::string>& strings) {
  std::vector<topolet_str> views;
  views.reserve(strings.size());
  for (const std::string& string : strings) views.push_back(view_of(string));
  return views;
}

template <class Pairs>
std::vector<topolet_kv> pairs_of(const Pairs& pairs) {
  std::vector<topolet_kv> views;
  views.reserve(pairs.size());
  for (const auto& pair : pairs) views.push_back({view_of(pair.first), view_of(pair.second)});
  return views;
}

}  // namespace

topolet_str view_of(std::string_view text) { return {text.data(), text.size()}; }

AbiTopology::AbiTopology(std::shared_ptr<const topology::Topology> topology)
    : topology_(topology ? std::move(topology) : std::make_shared<const topology::Topology>()) {
  const topology::Topology& machine = *topology_;
  pus_.reserve(machine.pus.size());
  for (const topology::Pu& pu : machine.pus) pus_.push_back({pu.os_index, pu.core, pu.l3, pu.die, pu.node, pu.package});

  fill_memory();
  domains_.reserve(machine.domains.size());
  for (const topology::Domain& domain : machine.domains) {
    domains_.push_back({static_cast<std::int32_t>(domain.kind), 0, view_of(domain.cpus), view_of(domain.nodes)});
  }
  cores_ = sets_of(machine.cores);
  l3s_ = sets_of(machine.l3s);
  dies_ = sets_of(machine.dies);
  packages_ = sets_of(machine.packages);
  for (const topology::CpuKind& kind : machine.cpu_kinds)
    cpu_kinds_.push_back({kind.efficiency, 0, view_of(kind.cpus)});
  for (const topology::Cache& cache : machine.caches) {
    caches_.push_back({cache.level, static_cast<std::int32_t>(cache.kind), cache.bytes, view_of(cache.cpus)});
  }
  fill_devices();

  view_ = {sizeof(topolet_topology), machine.distances_known ? 1U : 0U, machine.generation, pus_.data(), count_of(pus_),
           sizeof(topolet_pu), nodes_.data(), count_of(nodes_), sizeof(topolet_node), domains_.data(),
           count_of(domains_), sizeof(topolet_domain), cores_.data(), cores_.size(), l3s_.data(), l3s_.size(),
           dies_.data(), dies_.size(), packages_.data(), packages_.size(),
           // A plugin reads nodes × nodes numbers here, so a matrix of another size is not shown at all.
           machine.distances.size() == nodes_.size() * nodes_.size() ? machine.distances.data() : nullptr,
           view_of(machine.online), view_of(machine.allowed), view_of(machine.isolated), cpu_kinds_.data(),
           count_of(cpu_kinds_), sizeof(topolet_cpu_kind), caches_.data(), count_of(caches_), sizeof(topolet_cache),
           pci_bridges_.data(), count_of(pci_bridges_), sizeof(topolet_pci_bridge), pci_devices_.data(),
           count_of(pci_devices_), sizeof(topolet_pci_device), os_devices_.data(), count_of(os_devices_),
           sizeof(topolet_os_device)};
}

void AbiTopology::fill_memory() {
  const topology::Topology& machine = *topology_;
  std::size_t sizes = 0;
  for (const topology::Node& node : machine.nodes) sizes += node.huge_pages.size();
  huge_pages_.reserve(sizes);
  nodes_.reserve(machine.nodes.size());
  for (const topology::Node& node : machine.nodes) {
    const topolet_huge_pages* first = huge_pages_.data() + huge_pages_.size();
    for (const topology::HugePages& pages : node.huge_pages) huge_pages_.push_back({pages.page_bytes, pages.count});
    nodes_.push_back({node.os_index, node.memory_only ? 1U : 0U, view_of(node.cpus), view_of(node.subtype),
                      node.memory_bytes, first, count_of(node.huge_pages), sizeof(topolet_huge_pages)});
  }
}

void AbiTopology::fill_devices() {
  const topology::Topology& machine = *topology_;
  for (const topology::PciBridge& bridge : machine.pci_bridges) {
    pci_bridges_.push_back({view_of(bridge.address), bridge.parent, bridge.vendor_id, bridge.device_id, 0,
                            view_of(bridge.cpus), view_of(bridge.nodes)});
  }
  for (const topology::PciDevice& device : machine.pci_devices) {
    pci_devices_.push_back({view_of(device.address), device.bridge, device.class_id, device.vendor_id, device.device_id,
                            view_of(device.cpus), view_of(device.nodes), info_of(device.info)});
  }
  for (const topology::OsDevice& device : machine.os_devices) {
    os_devices_.push_back({view_of(device.name), view_of(device.subtype), static_cast<std::int32_t>(device.kind),
                           device.pci_device, view_of(device.cpus), view_of(device.nodes), info_of(device.info)});
  }
}

topolet_kvs AbiTopology::info_of(const topology::DeviceInfo& info) {
  const std::vector<topolet_kv>& pairs = infos_.emplace_back(pairs_of(info));
  return {pairs.data(), pairs.size()};
}

AbiDemand::AbiDemand(const placement::Demand& demand) {
  huge_page_limits_.reserve(demand.hugepage_limit_bytes.size());
  for (const auto& [page_size, bytes] : demand.hugepage_limit_bytes) {
    huge_page_limits_.push_back({view_of(page_size), bytes});
  }
  view_ = {sizeof(topolet_demand),         demand.memory_request_estimated ? 1U : 0U,
           demand.cpu_request_milli,       demand.cpu_limit_milli,
           demand.memory_request_bytes,    demand.memory_limit_bytes,
           huge_page_limits_.data(),       count_of(huge_page_limits_),
           sizeof(topolet_huge_page_limit)};
}

AbiLedger::AbiLedger(const placement::LedgerSnapshot& ledger, const topology::Topology& topology) {
  demands_.reserve(ledger.entries.size());
  entries_.reserve(ledger.entries.size());
  for (const placement::LedgerEntry& entry : ledger.entries) {
    const topolet_demand* demand = demands_.emplace_back(entry.demand).view();
    entries_.push_back({view_of(entry.key.pod_uid), view_of(entry.key.name), entry.key.attempt,
                        static_cast<std::int32_t>(entry.qos), static_cast<std::int32_t>(entry.placement.mode), 0,
                        view_of(entry.placement.cpus), view_of(entry.placement.withheld), view_of(entry.placement.mems),
                        demand, settings_of(entry.settings), strings_of(entry.used_devices)});
  }
  for (const placement::NodeDemand& node : demand_by_node(topology, ledger.entries)) {
    node_demands_.push_back({node.containers, node.exclusive_cpus, node.cpu_request_milli, node.memory_request_bytes});
  }
  view_ = {sizeof(topolet_ledger),
           0,
           ledger.generation,
           view_of(ledger.allowed),
           view_of(ledger.reserved),
           view_of(ledger.pool),
           view_of(ledger.exclusive),
           view_of(ledger.withheld),
           entries_.data(),
           count_of(entries_),
           sizeof(topolet_ledger_entry),
           node_demands_.data(),
           count_of(node_demands_),
           sizeof(topolet_node_demand)};
}

topolet_kvs AbiLedger::settings_of(const std::map<std::string, std::string>& settings) {
  if (settings.empty()) return {nullptr, 0};
  const std::vector<topolet_kv>& pairs = settings_.emplace_back(pairs_of(settings));
  return {pairs.data(), pairs.size()};
}

topolet_strs AbiLedger::strings_of(const std::vector<std::string>& strings) {
  if (strings.empty()) return {nullptr, 0};
  const std::vector<topolet_str>& views = strings_.emplace_back(views_of(strings));
  return {views.data(), views.size()};
}

AbiWorkload::AbiWorkload(const placement::Workload& workload)
    : demand_(workload.demand),
      devices_(views_of(workload.devices)),
      cdi_devices_(views_of(workload.cdi_devices)),
      env_(pairs_of(workload.env)),
      pod_labels_(pairs_of(workload.pod_labels)),
      pod_annotations_(pairs_of(workload.pod_annotations)),
      annotations_(pairs_of(workload.annotations)),
      settings_(pairs_of(workload.settings)),
      used_devices_(views_of(workload.used_devices)) {
  if (workload.pod_demand) pod_demand_.emplace(*workload.pod_demand);
  view_ = {sizeof(topolet_workload),
           workload.key.attempt,
           view_of(workload.key.pod_uid),
           view_of(workload.pod_name),
           view_of(workload.pod_namespace),
           view_of(workload.key.sandbox_id),
           view_of(workload.key.name),
           view_of(workload.runtime_handler),
           static_cast<std::int32_t>(workload.qos),
           0,
           demand_.view(),
           view_of(workload.kubelet_cpus),
           view_of(workload.kubelet_mems),
           {devices_.data(), devices_.size()},
           {cdi_devices_.data(), cdi_devices_.size()},
           {env_.data(), env_.size()},
           {pod_labels_.data(), pod_labels_.size()},
           {pod_annotations_.data(), pod_annotations_.size()},
           {annotations_.data(), annotations_.size()},
           {settings_.data(), settings_.size()},
           pod_demand_ ? pod_demand_->view() : nullptr,
           view_of(workload.pod_nodes),
           {used_devices_.data(), used_devices_.size()}};
}

AbiRequest::AbiRequest(const placement::PolicyRequest& request, std::shared_ptr<const AbiTopology> topology)
    : request_(request),
      topology_(std::move(topology)),
      ledger_(request.ledger, *topology_->topology()),
      workload_(request.workload) {
  fill_candidates();
  view_ = {sizeof(topolet_request),
           request.exclusive ? 1U : 0U,
           request.exclusive ? request.exclusive_cpus : 0,
           count_of(candidates_),
           candidates_.data(),
           sizeof(topolet_candidate),
           0,
           &workload_.view(),
           &topology_->view(),
           &ledger_.view()};
}

void AbiRequest::fill_candidates() {
  const CpuSet open = request_.offered();
  free_.reserve(request_.candidates.size());
  candidates_.reserve(request_.candidates.size());
  for (const placement::Candidate& candidate : request_.candidates) {
    const CpuSet& free = free_.emplace_back(candidate.cpus & open);
    candidates_.push_back({static_cast<std::int32_t>(candidate.kind), candidate.is_domain ? 1U : 0U,
                           view_of(candidate.nodes), view_of(candidate.cpus), view_of(free), candidate.distance, 0});
  }
}

}  // namespace topolet::plugin
