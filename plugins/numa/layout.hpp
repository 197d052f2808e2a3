// The machine as arrays of CPU groups, so that free CPUs can be counted quickly.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace topolet::numa {

/// The online CPUs divided into groups: cores, caches, nodes or packages. CPUs are named by their position in the
/// topology's `pus`, groups by a number in the order of the kubelet's ids. CPUs that belong to no group of the machine
/// form one more group, the last.
class Partition {
 public:
  Partition() = default;
  /// `group_of`: the group of each CPU, a number below `groups`.
  Partition(std::vector<std::uint32_t> group_of, std::size_t groups);

  std::size_t groups() const { return begin_.size() - 1; }
  std::uint32_t group_of(std::uint32_t pu) const { return group_of_[pu]; }
  std::size_t size(std::uint32_t group) const { return begin_[group + 1] - begin_[group]; }
  /// The CPUs of a group, ascending.
  const std::uint32_t* begin(std::uint32_t group) const { return members_.data() + begin_[group]; }
  const std::uint32_t* end(std::uint32_t group) const { return members_.data() + begin_[group + 1]; }

 private:
  std::vector<std::uint32_t> group_of_;
  std::vector<std::uint32_t> begin_ = {0};
  std::vector<std::uint32_t> members_;
};

/// All groups of one machine.
struct Layout {
  explicit Layout(const topolet_topology& topology);

  std::vector<std::uint32_t> os_index;  ///< by position of the CPU
  Partition cores;   ///< in the order of their lowest CPUs; a CPU whose core is unknown is a core of its own
  Partition caches;  ///< last-level ones
  Partition nodes;
  Partition packages;
  std::size_t node_count = 0;        ///< nodes with online CPUs
  std::size_t package_count = 0;     ///< packages with online CPUs
  std::size_t threads_per_core = 1;  ///< sdk::CoreMap::threads_per_core()

 private:
  Layout(const topolet_topology& topology, const sdk::CoreMap& map);
};

}  // namespace topolet::numa
