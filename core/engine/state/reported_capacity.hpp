// The capacity of a NUMA node that somebody outside of this machine reports for a while, such as the host of a virtual
// machine, or that was measured here. A plain value, and the rule by which it counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/topology/topology.hpp"

namespace topolet::engine {

/// Stored whole: stored_fields.hpp lists every field. It changes by transitions only, and ends at `until`.
struct ReportedCapacity {
  std::uint32_t node = 0;                   ///< OS index
  std::int64_t milli = 0;                   ///< the effective capacity of its CPUs, in thousandths of one
  std::chrono::milliseconds until{};        ///< wall clock
  std::string source;                       ///< who says so: "operator", "nrt", …
  std::chrono::milliseconds below_since{};  ///< wall clock: since when it is_low(); 0: it is not
  bool lowers = false;                      ///< for kLowAfter by now: fewer CPUs are promised
  friend bool operator==(const ReportedCapacity&, const ReportedCapacity&) = default;
};

/// The source of a capacity that topoletd has measured itself, by the time that the hypervisor takes from CPUs. What
/// anybody else tells goes before it.
inline constexpr const char* kMeasuredSource = "steal";
bool is_measured(const ReportedCapacity& reported);
/// So long it counts after it was measured last.
inline constexpr std::chrono::minutes kMeasuredStays{2};

/// The time for which a node must have been low before fewer of its CPUs are promised.
inline constexpr std::chrono::seconds kLowAfter{60};
/// The longest time for which a capacity may be reported: a source that is gone is not believed for ever.
inline constexpr std::chrono::hours kLongestReport{24 * 31};

/// Returns the capacity of a node's online CPUs when nothing disturbs them; 0 for a node that is memory-only or
/// missing.
std::int64_t nominal_milli(const topology::Topology* topology, std::uint32_t node);

/// Tells if a capacity is so much below nominal that a whole CPU may be missing: a little steal on a small node must
/// not keep out a pod that asks for all of it.
bool is_low(std::int64_t milli, std::int64_t nominal);

/// Returns the capacity with `below_since` and `lowers` as they are from `now` on, after `before`, which was reported
/// of the same node.
ReportedCapacity judged(ReportedCapacity reported, const std::optional<ReportedCapacity>& before, std::int64_t nominal,
                        std::chrono::milliseconds now);

/// Counts the CPUs that the node promises fewer, rounded to the nearest.
std::uint32_t missing_cpus(const ReportedCapacity& reported, std::int64_t nominal);

/// Writes "12000 of 16000 milli-CPUs (told by operator)".
std::string describe(const ReportedCapacity& reported, std::int64_t nominal);

}  // namespace topolet::engine
