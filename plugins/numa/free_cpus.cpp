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
      is_free_(layout.os_index.size(), 0),
      size_(cpus.size()),
      free_by_core_(layout.cores.groups(), 0),
      free_by_cache_(layout.caches.groups(), 0),
      free_by_node_(layout.nodes.groups(), 0),
      free_by_package_(layout.packages.groups(), 0) {
  for (const std::uint32_t pu : cpus) {
    is_free_[pu] = 1;
    ++free_by_core_[layout.cores.group_of(pu)];
    ++free_by_cache_[layout.caches.group_of(pu)];
    ++free_by_node_[layout.nodes.group_of(pu)];
    ++free_by_package_[layout.packages.group_of(pu)];
  }
}

std::vector<std::uint32_t> FreeCpus::cpus_of_node(std::uint32_t node) const {
  std::vector<std::uint32_t> cpus;
  for (const std::uint32_t* pu = layout_.nodes.begin(node); pu != layout_.nodes.end(node); ++pu) {
    if (is_free_[*pu] != 0) cpus.push_back(*pu);
  }
  return cpus;
}

Groups FreeCpus::inside(const Partition& outer, const Groups& outer_order, const Partition& inner,
                        const Groups& counts) const {
  Groups order;
  std::vector<std::uint8_t> listed(inner.groups(), 0);
  for (const std::uint32_t group : outer_order) {
    const auto from = static_cast<std::ptrdiff_t>(order.size());
    for (const std::uint32_t* pu = outer.begin(group); pu != outer.end(group); ++pu) {
      const std::uint32_t group_of_pu = inner.group_of(*pu);
      if (is_free_[*pu] == 0 || listed[group_of_pu] != 0) continue;
      listed[group_of_pu] = 1;
      order.push_back(group_of_pu);
    }
    sort_by_free(order.begin() + from, order.end(), counts);
  }
  return order;
}

Groups FreeCpus::nodes() const {
  if (nodes_first()) return with_free_cpus(free_by_node_);
  return inside(layout_.packages, packages(), layout_.nodes, free_by_node_);
}

Groups FreeCpus::packages() const {
  if (!nodes_first()) return with_free_cpus(free_by_package_);
  return inside(layout_.nodes, nodes(), layout_.packages, free_by_package_);
}

Groups FreeCpus::caches() const { return inside(layout_.nodes, nodes(), layout_.caches, free_by_cache_); }

Groups FreeCpus::cores() const {
  if (nodes_first()) return inside(layout_.packages, packages(), layout_.cores, free_by_core_);
  return inside(layout_.nodes, nodes(), layout_.cores, free_by_core_);
}

/// The kubelet goes by number here, which spreads over the cores only where siblings are numbered far apart.
Groups FreeCpus::one_of_each_core_first(bool idle_first) const {
  Groups order;
  Groups listed(layout_.cores.groups(), 0);  // how many, by core
  const auto others_beside = [this](std::uint32_t pu) {
    const std::uint32_t core = layout_.cores.group_of(pu);
    return layout_.cores.size(core) - free_by_core_[core];
  };
  for (const std::uint32_t package : packages()) {
    std::vector<Groups> rounds;
    for (const std::uint32_t* pu = layout_.packages.begin(package); pu != layout_.packages.end(package); ++pu) {
      if (is_free_[*pu] == 0) continue;
      const std::size_t round = listed[layout_.cores.group_of(*pu)]++;
      if (rounds.size() <= round) rounds.resize(round + 1);
      rounds[round].push_back(*pu);
    }
    for (Groups& round : rounds) {
      if (idle_first) {
        std::stable_sort(round.begin(), round.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return others_beside(a) < others_beside(b); });
      }
      order.insert(order.end(), round.begin(), round.end());
    }
  }
  return order;
}

Groups FreeCpus::core_by_core() const {
  Groups order;
  for (const std::uint32_t core : cores()) {
    for (const std::uint32_t* pu = layout_.cores.begin(core); pu != layout_.cores.end(core); ++pu) {
      if (is_free_[*pu] != 0) order.push_back(*pu);
    }
  }
  return order;
}

void FreeCpus::take(std::uint32_t pu, Selection& selection) {
  is_free_[pu] = 0;
  --size_;
  --free_by_core_[layout_.cores.group_of(pu)];
  --free_by_cache_[layout_.caches.group_of(pu)];
  --free_by_node_[layout_.nodes.group_of(pu)];
  --free_by_package_[layout_.packages.group_of(pu)];
  --selection.still_wanted;
  selection.cpus.push_back(pu);
}

void FreeCpus::remove(const std::vector<std::uint32_t>& cpus) {
  Selection selection{cpus.size(), {}};
  for (const std::uint32_t pu : cpus) take(pu, selection);
}

void FreeCpus::take_whole(const Partition& partition, const Groups& counts, const Groups& order, Selection& selection) {
  for (const std::uint32_t group : order) {
    if (counts[group] != partition.size(group) || selection.still_wanted < partition.size(group)) continue;
    for (const std::uint32_t* pu = partition.begin(group); pu != partition.end(group); ++pu) take(*pu, selection);
  }
}

void FreeCpus::take_nodes_and_packages(Selection& selection) {
  if (nodes_first()) take_whole(layout_.nodes, free_by_node_, nodes(), selection);
  take_whole(layout_.packages, free_by_package_, packages(), selection);
  if (!nodes_first()) take_whole(layout_.nodes, free_by_node_, nodes(), selection);
}

/// Takes the lowest cores of a cache if their free CPUs are exactly as many as are still wanted, as the kubelet does:
/// for an odd number it leaves out one CPU.
void FreeCpus::take_in_one_cache(std::uint32_t cache, Selection& selection) {
  const std::size_t per_core = layout_.threads_per_core;
  const std::size_t cores_wanted = (selection.still_wanted + per_core - 1) / per_core;
  Groups cores;
  for (const std::uint32_t* pu = layout_.caches.begin(cache); pu != layout_.caches.end(cache); ++pu) {
    if (is_free_[*pu] != 0) cores.push_back(layout_.cores.group_of(*pu));
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  if (cores.size() > cores_wanted) cores.resize(cores_wanted);
  Groups cpus;
  for (const std::uint32_t core : cores) {
    for (const std::uint32_t* pu = layout_.cores.begin(core); pu != layout_.cores.end(core); ++pu) {
      if (is_free_[*pu] != 0) cpus.push_back(*pu);
    }
  }
  if (selection.still_wanted % 2 != 0 && per_core > 1 && cpus.size() > selection.still_wanted) {
    cpus.erase(std::max_element(cpus.begin(), cpus.end()));
  }
  if (cpus.size() != selection.still_wanted) return;
  for (const std::uint32_t pu : cpus) take(pu, selection);
}

void FreeCpus::take_by_cache(Selection& selection) {
  const Groups order = caches();
  take_whole(layout_.caches, free_by_cache_, order, selection);
  for (const std::uint32_t cache : order) {
    if (selection.still_wanted == 0) return;
    take_in_one_cache(cache, selection);
  }
}

std::vector<std::uint32_t> FreeCpus::take_packed(std::size_t wanted, bool by_cache, AcrossCores across_cores) {
  Selection selection{std::min(wanted, size_), {}};
  selection.cpus.reserve(selection.still_wanted);
  take_nodes_and_packages(selection);
  if (by_cache && selection.still_wanted > 0) take_by_cache(selection);
  const bool is_across = across_cores != AcrossCores::kNo;
  if (!is_across && selection.still_wanted > 0) take_whole(layout_.cores, free_by_core_, cores(), selection);
  if (selection.still_wanted == 0) return selection.cpus;
  const bool idle_first = across_cores == AcrossCores::kIdleFirst;
  for (const std::uint32_t pu : is_across ? one_of_each_core_first(idle_first) : core_by_core()) {
    if (selection.still_wanted == 0) break;
    take(pu, selection);
  }
  return selection.cpus;
}

std::vector<std::uint32_t> FreeCpus::take_whole_nodes(std::size_t wanted) {
  Selection selection{std::min(wanted, size_), {}};
  take_nodes_and_packages(selection);
  return selection.cpus;
}

}  // namespace topolet::numa
