// A machine from an hwloc synthetic string, as a plugin sees it. See <topolet/testing.hpp>.
#pragma once

#include <hwloc.h>
#include <topolet/policy.hpp>

#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace topolet::sdk::testing {

inline Set set_of(const std::vector<std::uint32_t>& indices) {
  Set set;
  for (const std::uint32_t index : indices) set.insert(index);
  return set;
}

/// A device to add to a Machine. Devices with the same address are names of one piece of hardware.
struct Device {
  std::string name;     ///< such as nvml0
  std::string address;  ///< PCI, such as "0000:65:00.0"; empty for none
  Set nodes = {};       ///< local to the device; its local CPUs are theirs
  topolet_os_device_kind kind = TOPOLET_OS_DEVICE_GPU;
  std::vector<std::pair<std::string, std::string>> info = {};
  std::string bridge = {};  ///< PCI address; devices of one bridge share a switch, other devices of one node a root
};

/// A machine as a plugin sees it. Where several nodes have the same CPUs, the first is the CPU node and the others are
/// memory-only.
class Machine {
 public:
  /// `synthetic` is an hwloc description such as "pack:2 numa:1 l3:1 core:4 pu:2".
  explicit Machine(const std::string& synthetic) {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) throw std::runtime_error("hwloc cannot be initialised");
    const std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)> topology(raw, &hwloc_topology_destroy);
    if (hwloc_topology_set_synthetic(raw, synthetic.c_str()) != 0 || hwloc_topology_load(raw) != 0) {
      throw std::invalid_argument("hwloc cannot read the machine '" + synthetic + "'");
    }
    read(raw);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const topolet_topology& view() const { return view_; }
  Set online() const { return Set(view_.online); }
  /// `position` is that of the node in the topology's nodes. Empty for a memory-only node.
  Set cpus_of_node(std::size_t position) const {
    return nodes_.at(position).memory_only != 0 ? Set() : Set(nodes_.at(position).cpus);
  }
  /// The CPUs of all these nodes, which are named by OS index.
  Set cpus_of(const Set& nodes) const {
    Set cpus;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes.has(nodes_[i].os_index)) cpus |= cpus_of_node(i);
    }
    return cpus;
  }

  /// Sets the SLIT: node_count rows of node_count. By default nodes are 10 from themselves and 20 from each other.
  Machine& distances(std::vector<std::uint32_t> rows) {
    if (rows.size() != nodes_.size() * nodes_.size())
      throw std::invalid_argument("distances() takes nodes x nodes numbers");
    distances_ = std::move(rows);
    view_.distances_known = 1;
    refresh();
    return *this;
  }

  Machine& device(const Device& device) {
    const topolet_set nodes = keep(device.nodes);
    const topolet_set cpus = keep(cpus_of(device.nodes));
    std::uint32_t pci = TOPOLET_NONE;
    if (!device.address.empty()) {
      const auto known = pci_positions_.find(device.address);
      pci = known != pci_positions_.end() ? known->second : static_cast<std::uint32_t>(pci_devices_.size());
      if (known == pci_positions_.end()) {
        pci_devices_.push_back({keep(device.address), bridge_of(device, cpus, nodes), 0, 0, 0, cpus, nodes, {}});
        pci_positions_[device.address] = pci;
      }
    }
    std::vector<topolet_kv>& info = infos_.emplace_back();
    for (const auto& [key, value] : device.info) info.push_back({keep(key), keep(value)});
    os_devices_.push_back({keep(device.name), {nullptr, 0}, device.kind, pci, cpus, nodes, {info.data(), info.size()}});
    refresh();
    return *this;
  }

 private:
  static Set to_set(hwloc_const_bitmap_t bitmap) {
    Set set;
    if (bitmap == nullptr) return set;
    for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i)) {
      set.insert(static_cast<std::uint32_t>(i));
    }
    return set;
  }

  template <class Visit>
  static void for_each(hwloc_topology_t topology, hwloc_obj_type_t type, Visit visit) {
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) visit(object);
  }

  topolet_set keep(const Set& set) { return sets_.emplace_back(set).view(); }
  topolet_str keep(const std::string& text) { return borrow(texts_.emplace_back(text)); }

  std::vector<topolet_set> sets_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
    std::vector<topolet_set> sets;
    for_each(topology, type, [&](hwloc_obj_t object) { sets.push_back(keep(to_set(object->cpuset))); });
    return sets;
  }

  static std::uint32_t position_in(const std::vector<topolet_set>& sets, std::uint32_t os_index) {
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (topolet_set_has(sets[i], os_index) != 0) return static_cast<std::uint32_t>(i);
    }
    return TOPOLET_NONE;
  }

  void read(hwloc_topology_t topology) {
    view_.struct_size = sizeof(view_);
    view_.generation = 1;
    view_.online = view_.allowed = keep(to_set(hwloc_topology_get_topology_cpuset(topology)));
    cores_ = sets_of(topology, HWLOC_OBJ_CORE);
    l3s_ = sets_of(topology, HWLOC_OBJ_L3CACHE);
    dies_ = sets_of(topology, HWLOC_OBJ_DIE);
    packages_ = sets_of(topology, HWLOC_OBJ_PACKAGE);
    for (const hwloc_obj_type_t type : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L1CACHE}) {
      for_each(topology, type, [&](hwloc_obj_t object) {
        caches_.push_back({object->attr->cache.depth, TOPOLET_CACHE_UNIFIED,
                           static_cast<std::int64_t>(object->attr->cache.size), keep(to_set(object->cpuset))});
      });
    }
    read_nodes(topology);
    read_pus();
    read_domains();
    refresh();
  }

  void read_nodes(hwloc_topology_t topology) {
    std::map<std::uint32_t, hwloc_obj_t> by_os_index;
    for_each(topology, HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t object) { by_os_index[object->os_index] = object; });
    Set claimed;
    for (const auto& [os_index, object] : by_os_index) {
      const Set cpus = to_set(object->cpuset);
      const bool memory_only = cpus.empty() || !(cpus & claimed).empty();
      claimed |= cpus;
      nodes_.push_back({os_index,
                        memory_only ? 1U : 0U,
                        keep(cpus),
                        {nullptr, 0},
                        static_cast<std::int64_t>(object->attr->numanode.local_memory),
                        nullptr,
                        0,
                        sizeof(topolet_huge_pages)});
    }
    for (std::size_t i = 0; i < nodes_.size() * nodes_.size(); ++i) {
      distances_.push_back(i / nodes_.size() == i % nodes_.size() ? 10 : 20);
    }
  }

  void read_pus() {
    std::vector<topolet_set> node_cpus;
    for (const topolet_node& node : nodes_) {
      node_cpus.push_back(node.memory_only != 0 ? topolet_set{nullptr, 0} : node.cpus);
    }
    for (const std::uint32_t cpu : online().indices()) {
      if (position_in(cores_, cpu) == TOPOLET_NONE) cores_.push_back(keep(set_of({cpu})));
      pus_.push_back({cpu, position_in(cores_, cpu), position_in(l3s_, cpu), position_in(dies_, cpu),
                      position_in(node_cpus, cpu), position_in(packages_, cpu)});
    }
  }

  void read_domains() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].memory_only == 0) add_domain(TOPOLET_DOMAIN_NODE, nodes_[i].cpus);
    }
    for (const topolet_set& die : dies_) add_domain(TOPOLET_DOMAIN_DIE, die);
    for (const topolet_set& package : packages_) add_domain(TOPOLET_DOMAIN_PACKAGE, package);
    add_domain(TOPOLET_DOMAIN_MACHINE, view_.online);
  }

  void add_domain(topolet_domain_kind kind, topolet_set cpus) {
    Set nodes;
    for (const topolet_node& node : nodes_) {
      if (node.memory_only == 0 && size_of_both(node.cpus, cpus) > 0) nodes.insert(node.os_index);
    }
    for (const topolet_domain& known : domains_) {
      if (Set(known.nodes).indices() == nodes.indices()) return;
    }
    domains_.push_back({kind, 0, cpus, keep(nodes)});
  }

  std::uint32_t bridge_of(const Device& device, topolet_set cpus, topolet_set nodes) {
    const std::string root = "root of nodes " + device.nodes.to_string();
    const std::uint32_t host_bridge = bridge(root, "", TOPOLET_NONE, cpus, nodes);
    return device.bridge.empty() ? host_bridge : bridge(device.bridge, device.bridge, host_bridge, cpus, nodes);
  }

  std::uint32_t bridge(const std::string& key, const std::string& address, std::uint32_t parent, topolet_set cpus,
                       topolet_set nodes) {
    const auto [found, fresh] = bridge_positions_.try_emplace(key, static_cast<std::uint32_t>(pci_bridges_.size()));
    if (fresh) pci_bridges_.push_back({keep(address), parent, 0, 0, 0, cpus, nodes});
    return found->second;
  }

  template <class T>
  static std::uint32_t count_of(const std::vector<T>& items) {
    return static_cast<std::uint32_t>(items.size());
  }

  void refresh() {
    view_.pus = pus_.data(), view_.pu_count = count_of(pus_), view_.pu_stride = sizeof(topolet_pu);
    view_.nodes = nodes_.data(), view_.node_count = count_of(nodes_), view_.node_stride = sizeof(topolet_node);
    view_.domains = domains_.data(), view_.domain_count = count_of(domains_);
    view_.domain_stride = sizeof(topolet_domain);
    view_.cores = cores_.data(), view_.core_count = cores_.size();
    view_.l3s = l3s_.data(), view_.l3_count = l3s_.size();
    view_.dies = dies_.data(), view_.die_count = dies_.size();
    view_.packages = packages_.data(), view_.package_count = packages_.size();
    view_.distances = distances_.data();
    view_.caches = caches_.data(), view_.cache_count = count_of(caches_), view_.cache_stride = sizeof(topolet_cache);
    view_.cpu_kind_stride = sizeof(topolet_cpu_kind);
    view_.pci_bridges = pci_bridges_.data(), view_.pci_bridge_count = count_of(pci_bridges_);
    view_.pci_bridge_stride = sizeof(topolet_pci_bridge);
    view_.pci_devices = pci_devices_.data(), view_.pci_device_count = count_of(pci_devices_);
    view_.pci_device_stride = sizeof(topolet_pci_device);
    view_.os_devices = os_devices_.data(), view_.os_device_count = count_of(os_devices_);
    view_.os_device_stride = sizeof(topolet_os_device);
  }

  std::deque<Set> sets_;
  std::deque<std::string> texts_;
  std::deque<std::vector<topolet_kv>> infos_;
  std::vector<topolet_pu> pus_;
  std::vector<topolet_node> nodes_;
  std::vector<topolet_domain> domains_;
  std::vector<topolet_set> cores_, l3s_, dies_, packages_;
  std::vector<topolet_cache> caches_;
  std::vector<topolet_pci_bridge> pci_bridges_;
  std::vector<topolet_pci_device> pci_devices_;
  std::vector<topolet_os_device> os_devices_;
  std::map<std::string, std::uint32_t> pci_positions_, bridge_positions_;
  std::vector<std::uint32_t> distances_;
  topolet_topology view_{};
};

}  // namespace topolet::sdk::testing
