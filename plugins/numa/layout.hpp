// The machine as arrays that can be counted through quickly.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace topolet::numa {

/// One way to divide the online CPUs: into cores, caches, nodes or packages. CPUs are named by their position in the
/// topology's `pus`, groups by a number of their own whose order is that of the kubelet's ids. CPUs that belong to no
/// group of the machine make up one more, the last.
class Division {
 public:
  Division() = default;
  /// `group_of`: by position of the CPU; numbers below `groups`.
  Division(std::vector<std::uint32_t> group_of, std::size_t groups);

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

/// The divisions of one machine.
struct Layout {
  explicit Layout(const topolet_topology& topology);

  std::vector<std::uint32_t> os_index;  ///< by position
  Division cores;                       ///< by lowest CPU; a CPU whose core is unknown is one of its own
  Division caches;                      ///< last-level ones
  Division nodes;
  Division packages;
  std::size_t node_count = 0;        ///< nodes with online CPUs
  std::size_t package_count = 0;     ///< packages with online CPUs
  std::size_t threads_per_core = 1;  ///< the kubelet's: CPUs by cores, rounded down
};

/// The kubelet's threads per core alone, without the work of a Layout.
std::size_t threads_per_core(const topolet_topology& topology);

}  // namespace topolet::numa
