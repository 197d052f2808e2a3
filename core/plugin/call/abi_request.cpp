#include "core/plugin/call/abi_request.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/plugin/call/request_facts.hpp"

namespace topolet::plugin {

// The enumerators are passed as numbers; these are the places where ours and the ABI's could drift apart.
static_assert(static_cast<int>(topology::DomainKind::kNode) == TOPOLET_DOMAIN_NODE);
static_assert(static_cast<int>(topology::DomainKind::kDie) == TOPOLET_DOMAIN_DIE);
static_assert(static_cast<int>(topology::DomainKind::kPackage) == TOPOLET_DOMAIN_PACKAGE);
static_assert(static_cast<int>(topology::DomainKind::kMachine) == TOPOLET_DOMAIN_MACHINE);
static_assert(static_cast<int>(placement::Qos::kGuaranteed) == TOPOLET_QOS_GUARANTEED);
static_assert(static_cast<int>(placement::Qos::kBurstable) == TOPOLET_QOS_BURSTABLE);
static_assert(static_cast<int>(placement::Qos::kBestEffort) == TOPOLET_QOS_BESTEFFORT);
static_assert(static_cast<int>(placement::Certainty::kTold) == TOPOLET_CERTAINTY_TOLD);
static_assert(static_cast<int>(placement::Certainty::kEstimated) == TOPOLET_CERTAINTY_ESTIMATED);
static_assert(static_cast<int>(placement::Certainty::kUnknown) == TOPOLET_CERTAINTY_UNKNOWN);
static_assert(static_cast<int>(placement::Certainty::kOfPod) == TOPOLET_CERTAINTY_OF_POD);
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

/// An array with what `to_abi` makes of each item.
template <class T, class Items, class ToAbi>
const T* copy_each(LentBlock& block, const Items& items, ToAbi to_abi) {
  const LentBlock::Array<T> copied = block.make_array<T>(items.size());
  std::size_t i = 0;
  for (const auto& item : items) copied.own[i++] = to_abi(item);
  return copied.lent;
}

const topolet_set* copy_sets(LentBlock& block, const std::vector<CpuSet>& sets) {
  return copy_each<topolet_set>(block, sets, [&block](const CpuSet& set) { return block.copy(set); });
}

/// Copies the parts of a topology, each as an array.
class TopologyCopier {
 public:
  TopologyCopier(LentBlock& block, ValueTranslator& values, const topology::Topology& machine)
      : block_(block), values_(values), machine_(machine) {}

  const topolet_pu* pus() {
    return copy_each<topolet_pu>(block_, machine_.pus, [](const topology::Pu& pu) {
      return topolet_pu{pu.os_index, pu.core, pu.l3, pu.die, pu.node, pu.package};
    });
  }
  const topolet_node* nodes() {
    return copy_each<topolet_node>(block_, machine_.nodes, [this](const topology::Node& node) {
      const auto* huge_pages = copy_each<topolet_huge_pages>(block_, node.huge_pages, [](const auto& pages) {
        return topolet_huge_pages{pages.page_bytes, pages.count};
      });
      return topolet_node{node.os_index,
                          node.memory_only ? 1U : 0U,
                          block_.copy(node.cpus),
                          block_.copy(node.subtype),
                          node.memory_bytes,
                          huge_pages,
                          count_of(node.huge_pages),
                          sizeof(topolet_huge_pages)};
    });
  }
  const topolet_domain* domains() {
    return copy_each<topolet_domain>(block_, machine_.domains, [this](const topology::Domain& domain) {
      return topolet_domain{values_.shown(AbiValues::kDomainKind, domain.kind), 0, block_.copy(domain.cpus),
                            block_.copy(domain.nodes)};
    });
  }
  /// A plugin reads nodes × nodes numbers here, so a matrix of another size is not shown at all.
  const std::uint32_t* distances() {
    if (machine_.distances.size() != machine_.nodes.size() * machine_.nodes.size()) return nullptr;
    return copy_each<std::uint32_t>(block_, machine_.distances, [](std::uint32_t distance) { return distance; });
  }
  const topolet_cpu_kind* cpu_kinds() {
    return copy_each<topolet_cpu_kind>(block_, machine_.cpu_kinds, [this](const topology::CpuKind& kind) {
      return topolet_cpu_kind{kind.efficiency, 0, block_.copy(kind.cpus)};
    });
  }
  const topolet_cache* caches() {
    return copy_each<topolet_cache>(block_, machine_.caches, [this](const topology::Cache& cache) {
      return topolet_cache{cache.level, values_.shown(AbiValues::kCacheKind, cache.kind), cache.bytes,
                           block_.copy(cache.cpus)};
    });
  }
  const topolet_pci_bridge* pci_bridges() {
    return copy_each<topolet_pci_bridge>(block_, machine_.pci_bridges, [this](const topology::PciBridge& bridge) {
      return topolet_pci_bridge{
          block_.copy(bridge.address), bridge.parent, bridge.vendor_id, bridge.device_id, 0, block_.copy(bridge.cpus),
          block_.copy(bridge.nodes)};
    });
  }
  const topolet_pci_device* pci_devices() {
    return copy_each<topolet_pci_device>(block_, machine_.pci_devices, [this](const topology::PciDevice& device) {
      return topolet_pci_device{block_.copy(device.address),
                                device.bridge,
                                device.class_id,
                                device.vendor_id,
                                device.device_id,
                                block_.copy(device.cpus),
                                block_.copy(device.nodes),
                                copy_info(device.info)};
    });
  }
  const topolet_os_device* os_devices() {
    return copy_each<topolet_os_device>(block_, machine_.os_devices, [this](const topology::OsDevice& device) {
      return topolet_os_device{
          block_.copy(device.name), block_.copy(device.subtype), values_.shown(AbiValues::kOsDeviceKind, device.kind),
          device.pci_device,        block_.copy(device.cpus),    block_.copy(device.nodes),
          copy_info(device.info)};
    });
  }

 private:
  /// In the order of the keys, of those with one key the first: hwloc promises neither.
  topolet_kvs copy_info(const topology::DeviceInfo& info) {
    std::map<std::string_view, std::string_view> pairs;
    for (const auto& [key, value] : info) pairs.emplace(key, value);
    return block_.copy_pairs(pairs);
  }

  LentBlock& block_;
  ValueTranslator& values_;
  const topology::Topology& machine_;
};

/// A plugin knows three classes. One that nobody tells is neither Guaranteed nor does it need nothing.
std::int32_t qos_of(placement::Qos qos, ValueTranslator& values) {
  return values.shown(AbiValues::kQos, qos == placement::Qos::kUnknown ? placement::Qos::kBurstable : qos);
}

/// Returns the variables as a process finds them: by name, and of those of one name the last.
std::map<std::string_view, std::string_view> canonical_env(const placement::Workload& workload) {
  std::map<std::string_view, std::string_view> variables;
  for (const auto& [name, value] : workload.env) variables[name] = value;
  return variables;
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

std::uint32_t flags_of(const placement::LedgerEntry& entry) {
  return (entry.pending ? TOPOLET_ENTRY_PENDING : 0) | (entry.started ? TOPOLET_ENTRY_STARTED : 0) |
         (entry.adopted ? TOPOLET_ENTRY_ADOPTED : 0);
}

/// Copies the ledger's entries of containers, and what many of them have in common once: all that is copied is compared
/// after each call. Shared containers mostly run on the same CPUs, replicas request the same and have the same labels,
/// and the annotations of all have the same keys.
class EntryCopier {
 public:
  EntryCopier(LentBlock& block, ValueTranslator& values) : block_(block), values_(values) {}

  /// The entries must live as long as this object.
  topolet_ledger_entry copy(const placement::LedgerEntry& entry) {
    const placement::Placement& placement = entry.placement;
    if (last_ == nullptr || last_->placement.cpus != placement.cpus) cpus_ = block_.copy(placement.cpus);
    if (last_ == nullptr || last_->demand != entry.demand) demand_ = lend_demand(block_, values_, entry.demand);
    last_ = &entry;
    return {block_.copy(entry.key.pod_uid),
            block_.copy(entry.key.name),
            entry.key.attempt,
            qos_of(entry.qos, values_),
            values_.shown(AbiValues::kMode, placement.mode),
            values_.shown_flags(AbiValues::kEntryFlags, flags_of(entry)),
            cpus_,
            block_.copy(placement.withheld),
            block_.copy(placement.mems),
            demand_,
            copy_pairs(entry.settings),
            block_.copy(entry.used_devices),
            block_.copy(entry.pod_name),
            copy_text(entry.pod_namespace),
            block_.copy(entry.key.sandbox_id),
            block_.copy(entry.container_id),
            copy_text(entry.runtime_handler),
            copy_pairs(entry.pod_labels),
            copy_pairs(entry.pod_annotations),
            copy_pairs(entry.annotations),
            copy_pairs(entry.tags),
            block_.copy(entry.devices),
            block_.copy(entry.cdi_devices)};
  }

 private:
  /// Once each text.
  topolet_str copy_text(const std::string& text) {
    const auto [known, is_new] = texts_.try_emplace(text);
    if (is_new) known->second = block_.copy(text);
    return known->second;
  }
  /// Once each map.
  topolet_kvs copy_pairs(const SharedStringMap& pairs) {
    if (pairs.empty()) return {nullptr, 0};
    const SharedStringMap::Map& map = pairs;
    const auto [known, is_new] = maps_.try_emplace(&map);
    if (is_new) known->second = copy_new_pairs(map);
    return known->second;
  }
  topolet_kvs copy_new_pairs(const SharedStringMap::Map& pairs) {
    const LentBlock::Array<topolet_kv> copied = block_.make_array<topolet_kv>(pairs.size());
    std::size_t i = 0;
    for (const auto& [key, value] : pairs) {
      const topolet_str shown_key = copy_text(key);
      copied.own[i++] = {shown_key, block_.copy(value)};
    }
    return {copied.lent, pairs.size()};
  }

  struct HashOfContent {
    std::size_t operator()(const SharedStringMap::Map* map) const {
      std::size_t hash = map->size();
      for (const auto& [key, value] : *map) hash = hash * 31 + std::hash<std::string>()(value);
      return hash;
    }
  };
  struct IsSameContent {
    bool operator()(const SharedStringMap::Map* a, const SharedStringMap::Map* b) const { return a == b || *a == *b; }
  };

  LentBlock& block_;
  ValueTranslator& values_;
  const placement::LedgerEntry* last_ = nullptr;
  topolet_set cpus_{};
  const topolet_demand* demand_ = nullptr;
  std::unordered_map<std::string_view, topolet_str> texts_;
  std::unordered_map<const SharedStringMap::Map*, topolet_kvs, HashOfContent, IsSameContent> maps_;
};

}  // namespace

topolet_str view_of(std::string_view text) { return {text.data(), text.size()}; }

AbiTopology::AbiTopology(std::shared_ptr<const topology::Topology> topology, const KnownValues& known)
    : topology_(topology ? std::move(topology) : std::make_shared<const topology::Topology>()), values_(known) {
  const topology::Topology& machine = *topology_;
  TopologyCopier copy(block_, values_, machine);
  view_ = block_.copy_struct(topolet_topology{sizeof(topolet_topology),
                                              machine.distances_known ? 1U : 0U,
                                              machine.generation,
                                              copy.pus(),
                                              count_of(machine.pus),
                                              sizeof(topolet_pu),
                                              copy.nodes(),
                                              count_of(machine.nodes),
                                              sizeof(topolet_node),
                                              copy.domains(),
                                              count_of(machine.domains),
                                              sizeof(topolet_domain),
                                              copy_sets(block_, machine.cores),
                                              machine.cores.size(),
                                              copy_sets(block_, machine.l3s),
                                              machine.l3s.size(),
                                              copy_sets(block_, machine.dies),
                                              machine.dies.size(),
                                              copy_sets(block_, machine.packages),
                                              machine.packages.size(),
                                              copy.distances(),
                                              block_.copy(machine.online),
                                              block_.copy(machine.allowed),
                                              block_.copy(machine.isolated),
                                              copy.cpu_kinds(),
                                              count_of(machine.cpu_kinds),
                                              sizeof(topolet_cpu_kind),
                                              copy.caches(),
                                              count_of(machine.caches),
                                              sizeof(topolet_cache),
                                              copy.pci_bridges(),
                                              count_of(machine.pci_bridges),
                                              sizeof(topolet_pci_bridge),
                                              copy.pci_devices(),
                                              count_of(machine.pci_devices),
                                              sizeof(topolet_pci_device),
                                              copy.os_devices(),
                                              count_of(machine.os_devices),
                                              sizeof(topolet_os_device)});
  block_.seal();
}

AbiLedger::AbiLedger(const placement::LedgerSnapshot& ledger, const AbiTopology& topology, const LentMemory& memory,
                     const KnownValues& known)
    : topology_(topology.topology()), demands_(*topology_), values_(known), contents_(memory), list_(memory) {
  copy_entries(ledger.entries);
  contents_.seal();
  fill_list(ledger);
}

void AbiLedger::update(const placement::LedgerSnapshot& ledger) {
  if (shows(ledger)) return;
  replace_entries(ledger.entries);
  // So seldom that the rest of the decisions notice nothing, so often that little is compared for nothing.
  constexpr std::size_t kSpareBytes = 2 << 10;
  if (contents_.used_bytes() > live_bytes_ + live_bytes_ / 2 + kSpareBytes) copy_contents_anew();
  contents_.seal();
  fill_list(ledger);
}

bool AbiLedger::shows(const placement::LedgerSnapshot& ledger) const {
  return ledger_.generation == ledger.generation && ledger_.allowed == ledger.allowed &&
         ledger_.reserved == ledger.reserved && ledger_.pool == ledger.pool && ledger_.exclusive == ledger.exclusive &&
         ledger_.withheld == ledger.withheld && containers_ == ledger.entries.shared();
}

void AbiLedger::copy_entries(const placement::LedgerEntries& entries) {
  containers_ = entries.shared();
  entries_.resize(containers_.size());
  copy_contents_anew();
  demands_ = placement::NodeDemands(*topology_);
  demands_.add(entries);
}

void AbiLedger::copy_contents_anew() {
  if (contents_.used_bytes() > 0) contents_.clear();
  values_.clear();
  EntryCopier copier(contents_, values_);
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i] = copier.copy(*containers_[i]);
  live_bytes_ = contents_.used_bytes();
}

std::vector<std::size_t> AbiLedger::positions_of(const placement::LedgerEntries& entries) const {
  std::vector<std::size_t> positions;
  positions.reserve(entries.size());
  std::size_t at = 0;
  for (const placement::LedgerEntries::Shared& container : entries.shared()) {
    // Both are in the order of their keys. Where they are not, some that are there count as new.
    while (at < containers_.size() && containers_[at] != container && containers_[at]->key <= container->key) ++at;
    const bool is_there = at < containers_.size() && containers_[at] == container;
    positions.push_back(is_there ? at++ : kNew);
  }
  return positions;
}

void AbiLedger::replace_entries(const placement::LedgerEntries& entries) {
  const std::vector<std::size_t> positions = positions_of(entries);
  const auto new_ones = static_cast<std::size_t>(std::count(positions.begin(), positions.end(), kNew));
  if (2 * new_ones > positions.size()) return copy_entries(entries);
  std::vector<placement::LedgerEntries::Shared> containers;
  std::vector<topolet_ledger_entry> shown;
  containers.reserve(positions.size());
  shown.reserve(positions.size());
  placement::LedgerEntries gone;
  placement::LedgerEntries fresh;
  EntryCopier copier(contents_, values_);
  std::size_t at = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const placement::LedgerEntries::Shared& container = entries.shared()[i];
    if (positions[i] == kNew) {
      containers.push_back(container);
      shown.push_back(copier.copy(*container));
      fresh.push_back(container);
      continue;
    }
    for (; at < positions[i]; ++at) gone.push_back(std::move(containers_[at]));
    containers.push_back(std::move(containers_[at]));
    shown.push_back(entries_[at++]);
  }
  for (; at < containers_.size(); ++at) gone.push_back(std::move(containers_[at]));
  demands_.remove(gone);
  demands_.add(fresh);
  containers_.swap(containers);
  entries_.swap(shown);
}

void AbiLedger::fill_list(const placement::LedgerSnapshot& ledger) {
  ledger_ = {
      ledger.generation, ledger.allowed, ledger.reserved, ledger.pool, ledger.exclusive, ledger.withheld, {}, {}};
  list_.clear();
  const auto* node_demands = copy_each<
      topolet_node_demand>(list_, demands_.demands(), [](const placement::NodeDemand& node) {
    return topolet_node_demand{node.containers, node.exclusive_cpus, node.cpu_request_milli, node.memory_request_bytes};
  });
  view_ = list_.copy_struct(topolet_ledger{sizeof(topolet_ledger), 0, ledger.generation, list_.copy(ledger.allowed),
                                           list_.copy(ledger.reserved), list_.copy(ledger.pool),
                                           list_.copy(ledger.exclusive), list_.copy(ledger.withheld),
                                           list_.copy_array(entries_), count_of(entries_), sizeof(topolet_ledger_entry),
                                           node_demands, count_of(demands_.demands()), sizeof(topolet_node_demand)});
  list_.seal();
}

LentState AbiLedger::check() const {
  const LentState contents = contents_.check();
  return contents == LentState::kIntact ? list_.check() : contents;
}

LentState AbiLedger::check_all() const {
  const LentState contents = contents_.check_all();
  return contents == LentState::kIntact ? list_.check_all() : contents;
}

void AbiLedger::retire() {
  contents_.retire();
  list_.retire();
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

AbiRequest::AbiRequest(const placement::PolicyRequest& request, std::shared_ptr<const AbiTopology> topology,
                       LentMemory memory, const KnownValues& known)
    : AbiRequest(request, topology, std::make_shared<AbiLedger>(request.ledger, *topology, memory, known), memory,
                 known) {}

AbiRequest::AbiRequest(const placement::PolicyRequest& request, std::shared_ptr<const AbiTopology> topology,
                       std::shared_ptr<AbiLedger> ledger, LentMemory memory, const KnownValues& known)
    : request_(request),
      topology_(std::move(topology)),
      ledger_(std::move(ledger)),
      values_(known),
      block_(std::move(memory)) {
  const placement::CpuSource from = request.exclusive ? request.from : placement::CpuSource::kPool;
  view_ = block_.copy_struct(
      topolet_request{sizeof(topolet_request),
                      request.exclusive ? 1U : 0U,
                      request.exclusive ? request.exclusive_cpus : 0,
                      count_of(request.candidates),
                      copy_candidates(),
                      sizeof(topolet_candidate),
                      values_.shown(AbiValues::kOccasion, request.occasion),
                      lend_workload(block_, values_, request.workload, request.container_id, true),
                      &topology_->view(),
                      &ledger_->view(),
                      values_.shown(AbiValues::kMode, request.mode()),
                      values_.shown_flags(AbiValues::kRequestFlags, flags_of(request)),
                      values_.shown(AbiValues::kCpuSource, from),
                      values_.shown(AbiValues::kWhyShared, why_shared_of(request)),
                      block_.copy(request.had.cpus),
                      block_.copy(request.had.withheld),
                      block_.copy(request.had.mems),
                      block_.copy(request.keep),
                      request.min_shared_cpus,
                      request.largest_exclusive_cpus,
                      lend_load(block_, request.load.get(), *request.topology, request.ledger.entries)});
  block_.seal();
}

std::uint32_t AbiRequest::newest_minor() const {
  return std::max({values_.newest_minor(), ledger_->newest_minor(), topology_->newest_minor()});
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

const topolet_candidate* AbiRequest::copy_candidates() {
  const CpuSet usable = request_.usable();
  const CpuSet pool = request_.shared_cpus();
  return copy_each<topolet_candidate>(block_, request_.candidates, [&](const placement::Candidate& candidate) {
    return topolet_candidate{values_.shown(AbiValues::kDomainKind, candidate.kind),
                             candidate.is_domain ? 1U : 0U,
                             block_.copy(candidate.nodes),
                             block_.copy(candidate.cpus),
                             block_.copy(candidate.cpus & pool),
                             block_.copy(candidate.cpus & usable),
                             candidate.distance,
                             0};
  });
}

}  // namespace topolet::plugin
