// The room left in a node's zones, as both choosing and ranking judge it.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/extender/choose.hpp"
#include "cluster/extender/demand.hpp"
#include "cluster/extender/node_zones.hpp"
#include "core/base/result.hpp"

namespace topolet::extender {

inline constexpr std::int64_t kPermille = 1000;

/// Amounts left in some zones, and their totals.
struct Left {
  std::int64_t cpu = 0;
  std::int64_t all_cpu = 0;
  std::int64_t memory_mib = 0;
  std::int64_t all_memory_mib = 0;

  void add_zone(const Amounts& left, const Amounts& allocatable) {
    cpu += left.get(kCpu);
    all_cpu += allocatable.get(kCpu);
    memory_mib += left.get(kMemory) >> 20U;
    all_memory_mib += allocatable.get(kMemory) >> 20U;
  }
  void subtract(const Amounts& asks) {
    cpu -= asks.get(kCpu);
    memory_mib -= asks.get(kMemory) >> 20U;
  }
};

/// More is better.
std::int64_t preference_of(const Left& left, ZoneStrategy strategy);
/// Returns the CPUs of a zone that can be used at present.
std::int64_t usable_cpu(const Zone& zone);
/// The same as permille of all.
std::int64_t share_of_cpu(const Zone& zone);
/// Returns true if a container must be on a single zone.
bool must_be_one(const NodeZones& node, const Demand& demand);
/// FAILED_PRECONDITION where nothing can be placed by zones at all.
Status check_usable(const FreeZones& zones);
/// How a reason ends that says whether it is of use to wait.
inline constexpr const char* kNotNow = "not now";
inline constexpr const char* kNever = "never, even when the node is empty";
/// Why a container that asks for so much finds no place in what is left: FAILED_PRECONDITION. Where it is its pod's
/// only one, also whether it ever can.
Error no_place_for(const NodeZones& node, const Demand& demand, const std::vector<Amounts>& left, const Amounts& asks);

}  // namespace topolet::extender
