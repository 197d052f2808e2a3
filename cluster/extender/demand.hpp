// A pod's demand on the zones of a node: its containers that will have CPUs of their own, and how they want them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/api/pod.hpp"
#include "cluster/extender/node_rules.hpp"
#include "cluster/extender/resources.hpp"
#include "core/base/result.hpp"

namespace topolet::extender {

/// How many zones a container may be spread over: the pod's annotation topolet.io/zone-policy.
enum class ZonePolicy : std::uint8_t {
  kSingle,  ///< one, or the pod is not placed at all
  kFewest,  ///< as few as can be
  kAny,     ///< as many as it takes, and no node is better for having few
};
/// The order in which zones are taken: the pod's annotation topolet.io/zone-strategy.
enum class ZoneStrategy : std::uint8_t {
  kPacked,    ///< those that are fullest
  kSpread,    ///< those that are emptiest
  kBalanced,  ///< those whose CPUs and memory are then left in like parts
};

/// INVALID_ARGUMENT names the words there are.
Result<ZonePolicy> parse_zone_policy(std::string_view text);
Result<ZoneStrategy> parse_zone_strategy(std::string_view text);

struct ZoneDefaults {
  ZonePolicy policy = ZonePolicy::kFewest;
  ZoneStrategy strategy = ZoneStrategy::kPacked;
  /// As placement.exclusive-namespaces on nodes that do not tell theirs: patterns, in which * is any text.
  std::vector<std::string> exclusive_namespaces = {};
};

/// A container with CPUs of its own, on some nodes at least.
struct ContainerDemand {
  enum class Kind : std::uint8_t {
    kMain,
    kSidecar,  ///< runs beside all that come after it
    kInit,     ///< has ended before a main one begins
  };
  enum class Why : std::uint8_t {
    kDefault,    ///< it requests whole CPUs; not where its namespace is reserved
    kAnnotated,  ///< the pod says so
    kRoundedUp,  ///< the pod says so, and it may take more than it requests
  };
  /// The annotation topolet.io/isolated.
  enum class Isolated : std::uint8_t { kNone, kPrefer, kRequire };
  std::string name;
  Kind kind = Kind::kMain;
  Amounts asks;
  Why why = Why::kDefault;
  Isolated isolated = Isolated::kNone;
};

struct Demand {
  std::string uid;
  std::string name;
  std::string name_space;
  ZonePolicy policy = ZonePolicy::kFewest;
  ZoneStrategy strategy = ZoneStrategy::kPacked;
  std::int64_t priority = 0;
  std::string nominated_node = {};          ///< for which pods were evicted for it; empty: none
  bool may_take_more = false;               ///< on nodes that do not tell of exclusive namespaces
  bool concerns_zones = false;              ///< on some of the nodes that there are
  std::vector<ContainerDemand> containers;  ///< those that may have CPUs of their own: see own_cpus.hpp
  /// The CPUs requested by its containers that share CPUs, rounded up to whole ones: zones with room for them beside
  /// the others are preferred.
  std::int64_t shared_milli = 0;

  /// Otherwise it is placed as any pod is.
  bool is_for_zones() const { return concerns_zones; }
};

/// Reads a pod's demand. Containers get CPUs of their own if they belong to a Guaranteed pod and request whole CPUs,
/// except in reserved namespaces; and if the pod asks for it with the annotations topolet.io/cpus or
/// topolet.io/containers: for whole CPUs, or with the request rounded up in reserved and exclusive namespaces. These
/// namespaces may differ from node to node: `known` are all rules that nodes publish. INVALID_ARGUMENT, for the author
/// of the pod, if an annotation has an invalid value.
Result<Demand> read_demand(const api::Pod& pod, const ZoneDefaults& defaults, const ResourceNames& names,
                           const std::vector<NodeRules>& known = {});

}  // namespace topolet::extender
