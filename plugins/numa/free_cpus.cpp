#include "plugins/numa/free_cpus.hpp"

#include <algorithm>
#include <numeric>

namespace topolet::numa {
namespace {

using Groups = std::vector<std::uint32_t>;

void sort_by_free(Groups::iterator first, Groups::iterator last, const Groups& counts) {
  std::sort(first, last, [&counts](std::uint32_t a, std::uint32_t b) {
    return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
  });
}

Groups with_free_cpus(const Groups& counts) {
  Groups groups;
  for (std::uint32_t group = 0; group < counts.size(); ++group) {
    if (counts[group] > 0) groups.push_back(group);
  }
  sort_by_free(groups.begin(), groups.end(), counts);
  return groups;
}

}  // namespace

FreeCpus::FreeCpus(const Layout& layout, const std::vector<std::uint32_t>& cpus)
    : layout_(layout),
      free_(layout.os_index.size(), 0),
      size_(cpus.size()),
      in_cores_(layout.cores.groups(), 0),
      in_caches_(layout.caches.groups(), 0),
      in_nodes_(layout.nodes.groups(), 0),
      in_packages_(layout.packages.groups(), 0) {
  for (const std::uint32_t pu : cpus) {
    free_[pu] = 1;
    ++in_cores_[layout.cores.group_of(pu)];
    ++in_caches_[layout.caches.group_of(pu)];
    ++in_nodes_[layout.nodes.group_of(pu)];
    ++in_packages_[layout.packages.group_of(pu)];
  }
}

std::vector<std::uint32_t> FreeCpus::cpus_of_node(std::uint32_t node) const {
  std::vector<std::uint32_t> cpus;
  for (const std::uint32_t* pu = layout_.nodes.begin(node); pu != layout_.nodes.end(node); ++pu) {
    if (free_[*pu] != 0) cpus.push_back(*pu);
  }
  return cpus;
}

Groups FreeCpus::inside(const Division& outer, const Groups& outer_order, const Division& inner,
                        const Groups& counts) const {
  Groups order;
  std::vector<std::uint8_t> listed(inner.groups(), 0);
  for (const std::uint32_t group : outer_order) {
    const auto from = static_cast<std::ptrdiff_t>(order.size());
    for (const std::uint32_t* pu = outer.begin(group); pu != outer.end(group); ++pu) {
      const std::uint32_t candidate = inner.group_of(*pu);
      if (free_[*pu] == 0 || listed[candidate] != 0) continue;
      listed[candidate] = 1;
      order.push_back(candidate);
    }
    sort_by_free(order.begin() + from, order.end(), counts);
  }
  return order;
}

Groups FreeCpus::nodes() const {
  if (nodes_first()) return with_free_cpus(in_nodes_);
  return inside(layout_.packages, packages(), layout_.nodes, in_nodes_);
}

Groups FreeCpus::packages() const {
  if (!nodes_first()) return with_free_cpus(in_packages_);
  return inside(layout_.nodes, nodes(), layout_.packages, in_packages_);
}

Groups FreeCpus::caches() const { return inside(layout_.nodes, nodes(), layout_.caches, in_caches_); }

Groups FreeCpus::cores() const {
  if (nodes_first()) return inside(layout_.packages, packages(), layout_.cores, in_cores_);
  return inside(layout_.nodes, nodes(), layout_.cores, in_cores_);
}

Groups FreeCpus::single_cpus(bool across_cores) const {
  const Division& division = across_cores ? layout_.packages : layout_.cores;
  Groups order;
  for (const std::uint32_t group : across_cores ? packages() : cores()) {
    for (const std::uint32_t* pu = division.begin(group); pu != division.end(group); ++pu) {
      if (free_[*pu] != 0) order.push_back(*pu);
    }
  }
  return order;
}

void FreeCpus::take(std::uint32_t pu, Taking& taking) {
  free_[pu] = 0;
  --size_;
  --in_cores_[layout_.cores.group_of(pu)];
  --in_caches_[layout_.caches.group_of(pu)];
  --in_nodes_[layout_.nodes.group_of(pu)];
  --in_packages_[layout_.packages.group_of(pu)];
  --taking.wanted;
  taking.cpus.push_back(pu);
}

void FreeCpus::remove(const std::vector<std::uint32_t>& cpus) {
  Taking taking{cpus.size(), {}};
  for (const std::uint32_t pu : cpus) take(pu, taking);
}

void FreeCpus::take_whole(const Division& division, const Groups& counts, const Groups& order, Taking& taking) {
  for (const std::uint32_t group : order) {
    if (counts[group] != division.size(group) || taking.wanted < division.size(group)) continue;
    for (const std::uint32_t* pu = division.begin(group); pu != division.end(group); ++pu) take(*pu, taking);
  }
}

void FreeCpus::take_nodes_and_packages(Taking& taking) {
  if (nodes_first()) take_whole(layout_.nodes, in_nodes_, nodes(), taking);
  take_whole(layout_.packages, in_packages_, packages(), taking);
  if (!nodes_first()) take_whole(layout_.nodes, in_nodes_, nodes(), taking);
}

/// The lowest cores of a cache, if their free CPUs are just as many as are wanted; one too many is left out.
void FreeCpus::take_in_one_cache(std::uint32_t cache, Taking& taking) {
  const std::size_t per_core = layout_.threads_per_core;
  const std::size_t cores_wanted = (taking.wanted + per_core - 1) / per_core;
  Groups cores;
  for (const std::uint32_t* pu = layout_.caches.begin(cache); pu != layout_.caches.end(cache); ++pu) {
    if (free_[*pu] != 0) cores.push_back(layout_.cores.group_of(*pu));
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  if (cores.size() > cores_wanted) cores.resize(cores_wanted);
  Groups cpus;
  for (const std::uint32_t core : cores) {
    for (const std::uint32_t* pu = layout_.cores.begin(core); pu != layout_.cores.end(core); ++pu) {
      if (free_[*pu] != 0) cpus.push_back(*pu);
    }
  }
  if (taking.wanted % 2 != 0 && per_core > 1 && cpus.size() > taking.wanted) {
    cpus.erase(std::max_element(cpus.begin(), cpus.end()));
  }
  if (cpus.size() != taking.wanted) return;
  for (const std::uint32_t pu : cpus) take(pu, taking);
}

void FreeCpus::take_by_cache(Taking& taking) {
  const Groups order = caches();
  take_whole(layout_.caches, in_caches_, order, taking);
  for (const std::uint32_t cache : order) {
    if (taking.wanted == 0) return;
    take_in_one_cache(cache, taking);
  }
}

std::vector<std::uint32_t> FreeCpus::take_packed(std::size_t wanted, bool by_cache, bool across_cores) {
  Taking taking{std::min(wanted, size_), {}};
  taking.cpus.reserve(taking.wanted);
  take_nodes_and_packages(taking);
  if (by_cache && taking.wanted > 0) take_by_cache(taking);
  if (!across_cores && taking.wanted > 0) take_whole(layout_.cores, in_cores_, cores(), taking);
  if (taking.wanted == 0) return taking.cpus;
  for (const std::uint32_t pu : single_cpus(across_cores)) {
    if (taking.wanted == 0) break;
    take(pu, taking);
  }
  return taking.cpus;
}

std::vector<std::uint32_t> FreeCpus::take_whole_nodes(std::size_t wanted) {
  Taking taking{std::min(wanted, size_), {}};
  take_nodes_and_packages(taking);
  return taking.cpus;
}

}  // namespace topolet::numa
