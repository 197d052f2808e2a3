// The load on the CPUs that containers share.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/engine/state/allocation.hpp"

namespace topolet::engine {

class Ledger;

/// The CPU requests of containers that share CPUs, each spread evenly over the CPUs that the container may use. A plain
/// value. In whole numbers, so that the same containers always come to the same, in whatever order.
class SharedLoad {
 public:
  /// The request for a CPU, or for several together, in parts of a CPU.
  using Load = std::int64_t;
  static constexpr Load kPerMilli = Load{1} << 20U;
  static constexpr Load kWholeCpu = 1000 * kPerMilli;

  /// A container's request, in thousandths of a CPU.
  void add(const CpuSet& cpus, std::int64_t request_milli) { add_to_each(cpus, part(cpus, request_milli)); }
  void remove(const CpuSet& cpus, std::int64_t request_milli) { add_to_each(cpus, -part(cpus, request_milli)); }
  /// Returns the share of each CPU in the request of a container that may use `cpus`.
  static Load part(const CpuSet& cpus, std::int64_t request_milli);
  void add_to_each(const CpuSet& cpus, Load load);

  Load total(const CpuSet& cpus) const;
  Load highest(const CpuSet& cpus) const;
  /// Returns the average load of one of `cpus`; 0 if there are none.
  Load mean(const CpuSet& cpus) const;

  friend bool operator==(const SharedLoad&, const SharedLoad&) = default;

 private:
  std::vector<Load> of_cpu_;  ///< by OS index
};

/// Adds up the requests of many containers, most of which share the same CPUs.
class SharedLoadSum {
 public:
  void add(const CpuSet& cpus, std::int64_t request_milli);
  SharedLoad load() const;

 private:
  struct Less {
    bool operator()(const CpuSet& a, const CpuSet& b) const { return a.words() < b.words(); }
  };
  std::map<CpuSet, SharedLoad::Load, Less> parts_;  ///< what is asked of each of these CPUs
};

/// Returns the load of all containers that follow the pool, at any point in their lives. What they are widened by does
/// not count: their requests are for their homes.
SharedLoad shared_load_of(const Ledger& ledger);

/// Returns a container's request for shared CPUs, in thousandths of a CPU; 0 if it does not follow the pool.
std::int64_t shared_request_milli(const Allocation& allocation);

}  // namespace topolet::engine
