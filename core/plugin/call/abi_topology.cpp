#include "core/plugin/call/abi_topology.hpp"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plugin/call/abi_arrays.hpp"

namespace topolet::plugin {

// The enumerators are passed as numbers; these are the places where ours and the ABI's could drift apart.
static_assert(static_cast<int>(topology::DomainKind::kNode) == TOPOLET_DOMAIN_NODE);
static_assert(static_cast<int>(topology::DomainKind::kDie) == TOPOLET_DOMAIN_DIE);
static_assert(static_cast<int>(topology::DomainKind::kPackage) == TOPOLET_DOMAIN_PACKAGE);
static_assert(static_cast<int>(topology::DomainKind::kMachine) == TOPOLET_DOMAIN_MACHINE);
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

}  // namespace

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

}  // namespace topolet::plugin
