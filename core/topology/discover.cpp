#include "core/topology/discover.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/topology/build_topology.hpp"
#include "core/topology/device_files.hpp"
#include "core/topology/kernel_state.hpp"

namespace topolet::topology {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;

struct Free {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, Free>;

template <class Set>
Set to_set(hwloc_const_bitmap_t bitmap) {
  static_assert(sizeof(unsigned long) == sizeof(std::uint64_t));
  typename Set::Words words;
  const int count = bitmap == nullptr ? 0 : hwloc_bitmap_nr_ulongs(bitmap);
  for (int i = 0; i < count; ++i) words.push_back(hwloc_bitmap_to_ith_ulong(bitmap, static_cast<unsigned>(i)));
  return Set::from_words(std::move(words));
}

template <class Visit>
void for_each(const HwlocTopology& machine, hwloc_obj_type_t type, Visit visit) {
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(machine.get(), type, object)) != nullptr) visit(object);
}

std::vector<CpuSet> cpus_of_each(const HwlocTopology& machine, hwloc_obj_type_t type) {
  std::vector<CpuSet> sets;
  for_each(machine, type, [&sets](hwloc_obj_t object) { sets.push_back(to_set<CpuSet>(object->cpuset)); });
  return sets;
}

/// The first of the two attributes that is known, as the node's best initiator sees it; 0 if neither is.
std::uint64_t attribute(const HwlocTopology& machine, hwloc_obj_t node, hwloc_memattr_id_t first,
                        hwloc_memattr_id_t second) {
  for (const hwloc_memattr_id_t id : {first, second}) {
    hwloc_location initiator{};
    hwloc_uint64_t value = 0;
    if (hwloc_memattr_get_best_initiator(machine.get(), id, node, 0, &initiator, &value) == 0) return value;
  }
  return 0;
}

/// hwloc lists page sizes in ascending order, the ordinary one (at most 64 KiB, on arm64 and POWER) before the others.
std::vector<HugePages> huge_pages_of(hwloc_obj_t node) {
  constexpr hwloc_uint64_t kLargestOrdinaryPage = 65536;
  std::vector<HugePages> huge_pages;
  const auto& memory = node->attr->numanode;
  for (unsigned i = 0; i < memory.page_types_len; ++i) {
    const auto& pages = memory.page_types[i];
    if (pages.count == 0 || (i == 0 && pages.size <= kLargestOrdinaryPage)) continue;
    huge_pages.push_back({static_cast<std::int64_t>(pages.size), static_cast<std::int64_t>(pages.count)});
  }
  return huge_pages;
}

NodeDescription describe_node(const HwlocTopology& machine, hwloc_obj_t object) {
  NodeDescription node;
  node.os_index = object->os_index;
  node.cpus = to_set<CpuSet>(object->cpuset);
  if (object->subtype != nullptr) node.subtype = object->subtype;
  node.memory_bytes = static_cast<std::int64_t>(object->attr->numanode.local_memory);
  node.huge_pages = huge_pages_of(object);
  node.bandwidth_mib_s = attribute(machine, object, HWLOC_MEMATTR_ID_BANDWIDTH, HWLOC_MEMATTR_ID_READ_BANDWIDTH);
  node.latency_ns = attribute(machine, object, HWLOC_MEMATTR_ID_LATENCY, HWLOC_MEMATTR_ID_READ_LATENCY);
  return node;
}

/// Returns the distances of `nodes` from one matrix of hwloc's; empty if it leaves out a node or holds a value that is
/// not a distance.
std::vector<std::uint32_t> read_matrix(const hwloc_distances_s& matrix, const std::vector<NodeDescription>& nodes) {
  std::vector<std::size_t> positions;
  for (const NodeDescription& node : nodes) {
    for (unsigned i = 0; i < matrix.nbobjs; ++i) {
      if (matrix.objs[i] != nullptr && matrix.objs[i]->os_index == node.os_index) positions.push_back(i);
    }
  }
  if (positions.size() != nodes.size()) return {};
  std::vector<std::uint32_t> distances;
  for (const std::size_t from : positions) {
    for (const std::size_t to : positions) {
      const hwloc_uint64_t value = matrix.values[from * matrix.nbobjs + to];
      if (value == 0 || value > UINT32_MAX) return {};
      distances.push_back(static_cast<std::uint32_t>(value));
    }
  }
  return distances;
}

/// The kernel's SLIT is named "NUMALatency"; any other latency matrix between nodes serves where there is none.
std::vector<std::uint32_t> read_distances(const HwlocTopology& machine, const std::vector<NodeDescription>& nodes) {
  constexpr unsigned kMatrices = 16;
  hwloc_distances_s* matrices[kMatrices] = {};
  unsigned count = kMatrices;
  if (hwloc_distances_get_by_type(machine.get(), HWLOC_OBJ_NUMANODE, &count, matrices,
                                  HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0) {
    return {};
  }
  std::vector<std::uint32_t> distances;
  bool named = false;
  for (unsigned i = 0; i < count && i < kMatrices; ++i) {
    const char* name = hwloc_distances_get_name(machine.get(), matrices[i]);
    const bool is_slit = name != nullptr && std::strcmp(name, "NUMALatency") == 0;
    if (distances.empty() || (is_slit && !named)) {
      distances = read_matrix(*matrices[i], nodes);
      named = is_slit;
    }
    hwloc_distances_release(machine.get(), matrices[i]);
  }
  return distances;
}

std::vector<CpuKind> read_cpu_kinds(const HwlocTopology& machine) {
  std::vector<CpuKind> kinds;
  const int count = hwloc_cpukinds_get_nr(machine.get(), 0);
  for (int i = 0; i < count; ++i) {
    const Bitmap cpus(hwloc_bitmap_alloc());
    int efficiency = -1;
    if (hwloc_cpukinds_get_info(machine.get(), static_cast<unsigned>(i), cpus.get(), &efficiency, nullptr, nullptr,
                                0) != 0) {
      continue;
    }
    kinds.push_back(
        {efficiency < 0 ? kNoPosition : static_cast<std::uint32_t>(efficiency), to_set<CpuSet>(cpus.get())});
  }
  return kinds;
}

CacheKind cache_kind(hwloc_obj_cache_type_t type) {
  switch (type) {
    case HWLOC_OBJ_CACHE_DATA:
      return CacheKind::kData;
    case HWLOC_OBJ_CACHE_INSTRUCTION:
      return CacheKind::kInstruction;
    default:
      return CacheKind::kUnified;
  }
}

std::vector<Cache> read_caches(const HwlocTopology& machine) {
  std::vector<Cache> caches;
  for (int type = HWLOC_OBJ_L1CACHE; type <= HWLOC_OBJ_L3ICACHE; ++type) {
    for_each(machine, static_cast<hwloc_obj_type_t>(type), [&caches](hwloc_obj_t object) {
      const auto& cache = object->attr->cache;
      caches.push_back(
          {cache.depth, cache_kind(cache.type), static_cast<std::int64_t>(cache.size), to_set<CpuSet>(object->cpuset)});
    });
  }
  return caches;
}

std::string pci_address(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%01x", static_cast<unsigned>(pci.domain), pci.bus, pci.dev,
                pci.func);
  return text.data();
}

DeviceInfo info_of(hwloc_obj_t object) {
  DeviceInfo info;
  for (unsigned i = 0; i < object->infos_count; ++i) {
    if (object->infos[i].name != nullptr && object->infos[i].value != nullptr) {
      info.emplace_back(object->infos[i].name, object->infos[i].value);
    }
  }
  return info;
}

OsDeviceKind os_device_kind(hwloc_obj_osdev_type_t type) {
  switch (type) {
    case HWLOC_OBJ_OSDEV_BLOCK:
      return OsDeviceKind::kBlock;
    case HWLOC_OBJ_OSDEV_GPU:
      return OsDeviceKind::kGpu;
    case HWLOC_OBJ_OSDEV_NETWORK:
      return OsDeviceKind::kNetwork;
    case HWLOC_OBJ_OSDEV_OPENFABRICS:
      return OsDeviceKind::kOpenFabrics;
    case HWLOC_OBJ_OSDEV_DMA:
      return OsDeviceKind::kDma;
    case HWLOC_OBJ_OSDEV_COPROC:
      return OsDeviceKind::kCoprocessor;
    default:
      return OsDeviceKind::kOther;
  }
}

/// Walks the I/O objects below one ordinary object, parents before children.
class DeviceWalk {
 public:
  DeviceWalk(const HwlocTopology& machine, MachineDescription& description)
      : machine_(machine), description_(description) {}

  void run() { visit(hwloc_get_root_obj(machine_.get()), kNoPosition, kNoPosition); }

 private:
  void visit(hwloc_obj_t object, std::uint32_t bridge, std::uint32_t pci_device) {
    if (object->type == HWLOC_OBJ_BRIDGE) bridge = add_bridge(object, bridge);
    if (object->type == HWLOC_OBJ_PCI_DEVICE) pci_device = add_pci_device(object, bridge);
    if (object->type == HWLOC_OBJ_OS_DEVICE) add_os_device(object, pci_device);
    for (hwloc_obj_t child = object->first_child; child != nullptr; child = child->next_sibling) {
      visit(child, bridge, pci_device);
    }
    for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling) {
      visit(child, bridge, pci_device);
    }
  }

  template <class Device>
  void set_locality(Device& device, hwloc_obj_t object) const {
    const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(machine_.get(), object);
    device.cpus = to_set<CpuSet>(place->cpuset);
    device.nodes = to_set<NodeSet>(place->nodeset);
  }

  std::uint32_t add_bridge(hwloc_obj_t object, std::uint32_t parent) {
    PciBridge bridge;
    const auto& attributes = object->attr->bridge;
    bridge.parent = parent;
    if (attributes.upstream_type == HWLOC_OBJ_BRIDGE_PCI) {
      bridge.address = pci_address(attributes.upstream.pci);
      bridge.vendor_id = attributes.upstream.pci.vendor_id;
      bridge.device_id = attributes.upstream.pci.device_id;
    }
    set_locality(bridge, object);
    description_.pci_bridges.push_back(std::move(bridge));
    return static_cast<std::uint32_t>(description_.pci_bridges.size() - 1);
  }

  std::uint32_t add_pci_device(hwloc_obj_t object, std::uint32_t bridge) {
    PciDevice device;
    const auto& pci = object->attr->pcidev;
    device.address = pci_address(pci);
    device.bridge = bridge;
    device.class_id = pci.class_id;
    device.vendor_id = pci.vendor_id;
    device.device_id = pci.device_id;
    device.info = info_of(object);
    set_locality(device, object);
    description_.pci_devices.push_back(std::move(device));
    return static_cast<std::uint32_t>(description_.pci_devices.size() - 1);
  }

  void add_os_device(hwloc_obj_t object, std::uint32_t pci_device) {
    OsDevice device;
    if (object->name != nullptr) device.name = object->name;
    if (object->subtype != nullptr) device.subtype = object->subtype;
    device.kind = os_device_kind(object->attr->osdev.type);
    device.pci_device = pci_device;
    device.info = info_of(object);
    set_locality(device, object);
    description_.os_devices.push_back(std::move(device));
  }

  const HwlocTopology& machine_;
  MachineDescription& description_;
};

bool is_live(const DiscoverOptions& options) { return options.xml_file.empty() && options.synthetic.empty(); }

MachineDescription describe(const HwlocTopology& machine, bool live) {
  MachineDescription description;
  description.online = to_set<CpuSet>(hwloc_topology_get_topology_cpuset(machine.get()));
  description.present = to_set<CpuSet>(hwloc_topology_get_complete_cpuset(machine.get()));
  description.allowed = live ? description.online : to_set<CpuSet>(hwloc_topology_get_allowed_cpuset(machine.get()));
  description.cores = cpus_of_each(machine, HWLOC_OBJ_CORE);
  description.l3s = cpus_of_each(machine, HWLOC_OBJ_L3CACHE);
  description.dies = cpus_of_each(machine, HWLOC_OBJ_DIE);
  description.packages = cpus_of_each(machine, HWLOC_OBJ_PACKAGE);
  const auto allowed_nodes = to_set<NodeSet>(hwloc_topology_get_allowed_nodeset(machine.get()));
  for_each(machine, HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t object) {
    // A live daemon's own cgroup must not hide a node from it; what a recorded machine forbids nobody can use.
    if (live || allowed_nodes.contains(object->os_index)) {
      description.nodes.push_back(describe_node(machine, object));
    }
  });
  std::sort(description.nodes.begin(), description.nodes.end(),
            [](const NodeDescription& a, const NodeDescription& b) { return a.os_index < b.os_index; });
  description.distances = read_distances(machine, description.nodes);
  description.cpu_kinds = read_cpu_kinds(machine);
  description.caches = read_caches(machine);
  DeviceWalk(machine, description).run();
  return description;
}

Error cannot_read(const DiscoverOptions& options, int error) {
  const std::string why = error == 0 ? "hwloc cannot use it" : std::strerror(error);
  if (!options.xml_file.empty()) {
    return {Code::kInvalidArgument, "cannot read a machine from " + options.xml_file.string() + ": " + why +
                                        "; it must be an XML file as lstopo writes it"};
  }
  if (!options.synthetic.empty()) {
    return {Code::kInvalidArgument, "cannot read the machine '" + options.synthetic + "': " + why +
                                        "; it must be an hwloc synthetic string such as 'pack:2 numa:1 core:4 pu:2', "
                                        "or the path of an existing file"};
  }
  return {Code::kInternal, "hwloc cannot read this machine: " + why};
}

bool set_source(hwloc_topology_t topology, const DiscoverOptions& options) {
  if (!options.xml_file.empty()) return hwloc_topology_set_xml(topology, options.xml_file.c_str()) == 0;
  if (!options.synthetic.empty()) return hwloc_topology_set_synthetic(topology, options.synthetic.c_str()) == 0;
  return true;
}

Result<HwlocTopology> load(const DiscoverOptions& options) {
  errno = 0;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return cannot_read(options, errno);
  HwlocTopology machine(raw);
  // Without the flag hwloc hides what the daemon's own cgroup may not use.
  if (hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
      hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 || !set_source(raw, options) ||
      hwloc_topology_load(raw) != 0) {
    return cannot_read(options, errno);
  }
  return machine;
}

/// Puts values that the caller gave in the place of those that were read from the machine.
Status apply_overrides(const DiscoverOptions& options, MachineDescription& description) {
  description.present |= description.online;
  description.online -= options.offline;
  description.allowed -= options.offline;
  description.isolated |= options.isolated;
  if (options.distances.empty()) return {};
  const std::size_t nodes = description.nodes.size();
  if (options.distances.size() != nodes * nodes) {
    return Error{Code::kInvalidArgument, fmt::format("{} distances for {} NUMA nodes; it takes {} rows of {}",
                                                     options.distances.size(), nodes, nodes, nodes)};
  }
  description.distances = options.distances;
  return {};
}

}  // namespace

Result<std::shared_ptr<const Topology>> discover(const DiscoverOptions& options) {
  if (!options.xml_file.empty() && !options.synthetic.empty()) {
    return Error{Code::kInvalidArgument, "a machine is read from a file or from a string, not from both"};
  }
  const Result<HwlocTopology> machine = load(options);
  if (!machine) return machine.error();
  MachineDescription description = describe(machine.value(), is_live(options));
  if (is_live(options)) {
    const Result<KernelState> state = read_kernel_state(options.sysfs_root);
    if (!state) return state.error();
    if (state->online) description.online &= *state->online;
    description.present |= state->present;
    description.isolated = state->isolated;
    description.device_files = read_device_files(options.sysfs_root);
    description.device_nodes = read_device_nodes(options.sysfs_root);
  }
  if (Status overridden = apply_overrides(options, description); !overridden) return overridden.error();
  return std::make_shared<const Topology>(build_topology(description));
}

}  // namespace topolet::topology
