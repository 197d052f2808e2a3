// Computes how much a new container could get on each NUMA node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/workload.hpp"

namespace topolet::engine {

class Ledger;
class Placer;

/// The CPUs that one container could have for itself on a node, and the bookings there.
struct NodeFit {
  std::uint32_t node = 0;            ///< OS index
  std::uint32_t exclusive_cpus = 0;  ///< 0 on a memory-only node; fewer where the node's reported capacity lowers it
  /// Requested by containers whose memory is here: in equal parts over the nodes that it is bound to, else the way of
  /// the container's CPUs. Of a bound one whose request is not known, its limit counts. Rounded up.
  std::int64_t booked_memory_bytes = 0;
  std::map<std::string, std::int64_t> booked_huge_page_bytes = {};  ///< the same by page size, "2MB"
  std::uint32_t shared_cpus = 0;  ///< but for the reserved ones, those that no container has alone
  /// The parts of `exclusive_cpus`: the most for a container on CPUs of the pool, and for one on isolated ones.
  std::uint32_t pool_cpus = 0;
  std::uint32_t isolated_cpus = 0;

  friend bool operator==(const NodeFit&, const NodeFit&) = default;
};

/// A container that is bound to this machine and not in the ledger yet.
struct PendingContainer {
  PendingContainer(placement::Workload pending,  // NOLINT(google-explicit-constructor): most come after no other
                   std::vector<std::string> init_containers = {})
      : workload(std::move(pending)), after(std::move(init_containers)) {}

  placement::Workload workload;
  /// Init containers of its pod that have ended before it is created, by name, whether the ledger has them or they are
  /// pending too.
  std::vector<std::string> after;
  /// To which the most devices are near that the kubelet has given it, where it is placed by them: its zone, or what of
  /// the zone that a scheduler has chosen is among them. Empty: nobody knows, or nobody cares.
  NodeSet device_nodes = {};
  /// A container of its pod in the ledger that is to have all this as well: it is being resized. Where it is among
  /// those that end before, it is created anew, and asks for all this and no more. Empty: it is a container of its own.
  std::string grows = {};
};

struct UnplacedContainer {
  placement::ContainerKey key;
  std::string reason;
};

struct Fits {
  std::uint64_t generation = 0;  ///< of the ledger that this is true of
  std::vector<NodeFit> nodes;    ///< all nodes of the machine, in its order
  std::vector<UnplacedContainer> unplaced;
  /// False where no container gets CPUs of its own, and so none is denied for want of them.
  bool gives_exclusive_cpus = true;
  bool kubelet_hands_out_cpus = false;  ///< by its own CPU manager
  bool has_own_exclusives = false;      ///< some container has CPUs alone that the kubelet has not given it
  std::string node_name;                ///< the node that zones have to be for
  bool ignores_zones = false;           ///< the operator permits no zones
  std::vector<std::string> reserved_namespaces = {};  ///< as in PlacementRules, as the next two
  std::vector<std::string> exclusive_namespaces = {};
  placement::IsolatedRule isolated = placement::IsolatedRule::kAnnotated;
  bool lost_votes = false;  ///< in some decision a policy was not heard: all this may be wrong
};

/// Computes the most that one new container, Guaranteed and without devices and annotations, would be given on each
/// node with CPUs if it had to be there: as many as it asked for, by a plan of `placer`. The policies are shown the
/// node as the only candidate. CPUs that are kept for the next attempts of containers count as free: they yield. If it
/// may have isolated CPUs or those of the pool (placement.isolated), the larger number counts. All 0 if no such
/// container gets CPUs of its own, as while the kubelet hands them out.
///
/// `pending` are placed first, in this order, those of a pod one after the other, as if they were created now: where
/// they must, with CPUs that are kept for others. One that the ledger has, by the pod's uid and its name, is not placed
/// again, and one that is denied takes nothing. Annotations are read here unless `settings` has some. One that comes
/// `after` others may have their room; on each node the most counts that the pod will have there at a time, since
/// nobody knows when it will be (InitRoom). A growth (`grows`) is planned as the container's resize (plan_resize), and
/// takes nothing if that would be denied; one that would have fewer CPUs of its own by it keeps them meanwhile.
///
/// A number is never too large. It is the largest possible unless policies deny smaller containers and grant larger
/// ones with more CPUs in between than the largest core of the node has threads; see LargestGranted in fits.cpp.
///
/// Where a reported capacity `lowers` (ReportedCapacity), so many CPUs fewer as are missing. No decision reads that: it
/// is for whoever chooses between machines.
///
/// Every plan has the whole time of a decision. Same arguments, same answer, as far as the policies' are the same.
Fits compute_fits(const Placer& placer, const Ledger& ledger, const std::vector<PendingContainer>& pending);

/// An error ends the computation, and is its result.
using MayGoOn = std::function<Status()>;

/// The same; `may_go_on` is asked before each decision. A decision takes the longer the more containers there are, so
/// that all take a time that grows with the square of `pending`: whoever takes these from others bounds them.
Result<Fits> compute_fits(const Placer& placer, const Ledger& ledger, const std::vector<PendingContainer>& pending,
                          MayGoOn may_go_on);

}  // namespace topolet::engine
