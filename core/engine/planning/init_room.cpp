#include "core/engine/planning/init_room.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

namespace topolet::engine {
namespace {

/// So many of `cpus`, of as few cores as that takes.
CpuSet take_by_cores(const topology::Topology& topology, const CpuSet& cpus, std::size_t count) {
  std::vector<CpuSet> parts;
  for (const CpuSet& core : topology.cores) parts.push_back(core & cpus);
  std::stable_sort(parts.begin(), parts.end(), [](const CpuSet& a, const CpuSet& b) { return a.size() > b.size(); });
  CpuSet taken;
  for (const CpuSet& part : parts) {
    for (const std::uint32_t cpu : part) {
      if (taken.size() == count) return taken;
      taken.insert(cpu);
    }
  }
  return taken;
}

/// In parts that are as large as `shares` are, each rounded up.
void divide(std::int64_t bytes, const std::vector<std::int64_t>& shares,
            const std::function<void(std::size_t position, std::int64_t part)>& take) {
  std::int64_t all = 0;
  for (const std::int64_t share : shares) all += share;
  for (std::size_t i = 0; i < shares.size() && bytes > 0; ++i) {
    if (shares[i] == 0) continue;
    // (bytes / all) first: a machine's bytes times its CPUs may not fit.
    const std::int64_t rest = bytes % all * shares[i];
    take(i, bytes / all * shares[i] + (rest + all - 1) / all);
  }
}

/// Returns the CPUs that nobody else may run on.
CpuSet held_by(const Allocation& allocation) {
  DedicatedCpus held;
  held.add(allocation);
  return held.exclusive | held.withheld;
}

}  // namespace

void NodeMemory::add(const NodeMemory& other) {
  bytes += other.bytes;
  for (const auto& [size, more] : other.huge_page_bytes) huge_page_bytes[size] += more;
}

void NodeMemory::subtract(const NodeMemory& other) {
  bytes = std::max<std::int64_t>(0, bytes - other.bytes);
  for (const auto& [size, less] : other.huge_page_bytes) {
    if (const auto found = huge_page_bytes.find(size); found != huge_page_bytes.end())
      found->second = std::max<std::int64_t>(0, found->second - less);
  }
}

void NodeMemory::raise_to(const NodeMemory& other) {
  bytes = std::max(bytes, other.bytes);
  for (const auto& [size, least] : other.huge_page_bytes)
    huge_page_bytes[size] = std::max(huge_page_bytes[size], least);
}

std::vector<NodeMemory> memory_by_node(const topology::Topology& topology, const Allocation& allocation,
                                       const placement::Demand& demand) {
  const NodeSet& mems = allocation.intended_mems();
  std::vector<std::int64_t> shares;
  for (const topology::Node& node : topology.nodes) {
    const bool is_unbound_there = mems.empty() && !node.memory_only;
    const std::size_t share = is_unbound_there ? (allocation.home_cpus() & node.cpus).size()
                                               : static_cast<std::size_t>(mems.contains(node.os_index));
    shares.push_back(static_cast<std::int64_t>(share));
  }
  std::vector<NodeMemory> memory(topology.nodes.size());
  const bool is_known = demand.memory_request_bytes > 0 || mems.empty();
  divide(is_known ? demand.memory_request_bytes : demand.memory_limit_bytes, shares,
         [&](std::size_t i, std::int64_t part) { memory[i].bytes += part; });
  for (const auto& [size, bytes] : demand.hugepage_limit_bytes) {
    divide(bytes, shares,
           [&, &size = size](std::size_t i, std::int64_t part) { memory[i].huge_page_bytes[size] += part; });
  }
  return memory;
}

void InitRoom::add(const placement::ContainerKey& key, const std::vector<std::string>& after) {
  for (Ended& ended : ended_) {
    if (std::find(after.begin(), after.end(), ended.init.workload.key.name) != after.end()) ended.later.push_back(key);
  }
}

CpuSet InitRoom::cpus_beyond(const topology::Topology& topology, const Ledger& ledger) const {
  CpuSet in_use;
  for (const auto& [key, allocation] : ledger.allocations()) in_use |= held_by(allocation);
  CpuSet beyond;
  for (const topology::Node& node : topology.nodes) {
    CpuSet most;
    for (const Ended& ended : ended_) {
      CpuSet later;
      for (const placement::ContainerKey& key : ended.later) {
        if (const Allocation* allocation = ledger.find(key)) later |= held_by(*allocation) & node.cpus;
      }
      const CpuSet had = held_by(ended.init) & node.cpus;
      const std::size_t more = had.size() - std::min(had.size(), later.size());
      if (more > most.size()) most = take_by_cores(topology, had - in_use, more);
    }
    beyond |= most;
  }
  return beyond;
}

std::vector<NodeMemory> InitRoom::memory_beyond(const topology::Topology& topology, const Ledger& ledger) const {
  std::vector<NodeMemory> most(topology.nodes.size());
  for (const Ended& ended : ended_) {
    std::vector<NodeMemory> beyond = memory_by_node(topology, ended.init, ended.init.workload.demand);
    for (const placement::ContainerKey& key : ended.later) {
      const Allocation* allocation = ledger.find(key);
      if (allocation == nullptr) continue;
      const std::vector<NodeMemory> later = memory_by_node(topology, *allocation, ledger.booked_demand(key));
      for (std::size_t i = 0; i < beyond.size(); ++i) beyond[i].subtract(later[i]);
    }
    for (std::size_t i = 0; i < beyond.size(); ++i) most[i].raise_to(beyond[i]);
  }
  return most;
}

}  // namespace topolet::engine
