// The capacity of a NUMA node for a while, as somebody outside of this machine knows it, such as the host of a virtual
// machine. A plain value, and the rule by which it counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/topology/topology.hpp"

namespace topolet::engine {

/// Stored whole: stored_fields.hpp lists every field. It changes by transitions only, and ends at `until`.
struct ToldCapacity {
  std::uint32_t node = 0;                   ///< OS index
  std::int64_t milli = 0;                   ///< the effective capacity of its CPUs, in thousandths of one
  std::chrono::milliseconds until{};        ///< wall clock
  std::string source;                       ///< who says so: "operator", "nrt", …
  std::chrono::milliseconds below_since{};  ///< wall clock: since when it is_low(); 0: it is not
  bool lowers = false;                      ///< for kLowAfter by now: fewer CPUs are promised
  friend bool operator==(const ToldCapacity&, const ToldCapacity&) = default;
};

/// So long a node must have been low before fewer of its CPUs are promised.
inline constexpr std::chrono::seconds kLowAfter{60};
/// The longest time for which a capacity may be told: a source that has gone is not believed for ever.
inline constexpr std::chrono::hours kLongestTold{24 * 31};

/// Returns the undisturbed capacity of a node's online CPUs; 0 for a memory-only one, and for one that is not there.
std::int64_t nominal_milli(const topology::Topology* topology, std::uint32_t node);

/// Returns true if it is so far below nominal that a whole CPU may be missing: a little steal on a small node must not
/// keep out a pod that asks for all of it.
bool is_low(std::int64_t milli, std::int64_t nominal);

/// The same capacity with `below_since` and `lowers` as they are from `now` on, after `before`, which was told of the
/// same node.
ToldCapacity judged(ToldCapacity told, const std::optional<ToldCapacity>& before, std::int64_t nominal,
                    std::chrono::milliseconds now);

/// Returns by how many CPUs fewer are promised of the node, rounded to the nearest.
std::uint32_t missing_cpus(const ToldCapacity& told, std::int64_t nominal);

/// "12000 of 16000 milli-CPUs (told by operator)".
std::string describe(const ToldCapacity& told, std::int64_t nominal);

}  // namespace topolet::engine
