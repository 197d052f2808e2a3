// How near each NUMA node is to the devices of one container.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/gpu/container_devices.hpp"
#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {

/// How near a set of nodes is to the devices.
struct LocalityScore {
  double nearness = 0;         ///< mean over the devices, 0 to 1; 1 is local
  std::size_t local = 0;       ///< devices that are local
  std::size_t local_cpus = 0;  ///< of an exclusive container's CPUs, those that can be local; at most what it asks for
  Closeness closeness = Closeness::kSameSwitch;  ///< of the two local devices that are farthest from each other
  double deviceless_share = 0;                   ///< share of the nodes that no device is local to
  std::uint32_t nearest = 0, farthest = 0;       ///< distances of the devices that are not local; 0 if all are
  bool same_package = false;  ///< each device that is not local is in the package of one of the nodes
  bool is_limited = false;    ///< the container has CPUs on some of the nodes only, because they are more than its CPUs

  /// 0 to 7 points, to tell apart node sets of the same nearness.
  std::int32_t penalty() const;
};

/// A candidate's nodes and CPUs, and how local the devices are to them.
struct CandidateLocality {
  Nodes usable;                ///< its nodes that have assignable CPUs
  std::size_t assignable = 0;  ///< CPUs that may be assigned
  LocalityScore score;
};

/// Borrows the request. Values that are the same for all candidates are computed once: there may be hundreds.
class LocalityModel {
 public:
  /// `whole_cores`: exclusive CPUs are assigned as whole cores.
  LocalityModel(const topolet_request& request, const ContainerDevices& container, bool whole_cores);

  bool has_devices() const { return !devices_.empty(); }
  std::size_t device_count() const { return devices_.size(); }
  const CpuNodes& nodes() const { return nodes_; }

  /// Returns the threads of the largest core.
  std::size_t threads_per_core() const { return threads_per_core_; }
  /// On how many nodes the container can have CPUs of its own.
  std::size_t max_nodes() const;

  /// The free CPUs that may be assigned: where an exclusive container gets whole cores, those of cores that are free as
  /// a whole, if they suffice; else all.
  sdk::Set assignable(topolet_set free) const;

  /// Rates a candidate; the result serves reason() and rejection() as well.
  CandidateLocality locality_of(const topolet_candidate& candidate) const;
  /// Rates `nodes` with these free CPUs. A container that cannot be on all of them is taken to be on the best ones.
  LocalityScore score(const Nodes& nodes, topolet_set free) const;
  /// Returns true if one of the devices is not local to any of `nodes`, however many CPUs the container has.
  bool misses_a_device(const Nodes& nodes) const;
  bool is_local(std::size_t device, std::uint32_t node) const { return proximity(device, node).is_local; }
  bool is_local_to_any(std::uint32_t node) const { return devices_local_to(node) > 0; }
  std::size_t devices_local_to(std::uint32_t node) const { return node_localities_[node].local_devices; }
  /// Returns the nearness of one device, 0 to 1; 1 is local.
  double nearness_to(std::size_t device, std::uint32_t node) const { return proximity(device, node).nearness; }
  /// Returns the mean nearness of all devices, 0 to 1.
  double nearness_of(std::uint32_t node) const { return node_localities_[node].nearness; }

  /// "2 of 3 GPUs are local", or "no GPU is local".
  std::string local_text(std::size_t count) const;
  /// Why a candidate has its score: its own locality, that of other nodes, and what is not counted.
  std::string reason(const topolet_candidate& candidate, const CandidateLocality& locality) const;
  /// The same for a candidate that is rejected. Among sets that are neither one node nor all nodes, those of the same
  /// size and the same number of local devices get the same text, so that the core can fold them in a denial.
  std::string rejection(const topolet_candidate& candidate, const CandidateLocality& locality) const;
  /// Each note is preceded by "; ".
  const std::string& notes() const { return notes_; }
  /// Describes each node alone, nearest first, for reason().
  void compare_nodes();

 private:
  static constexpr std::uint32_t kUnknownDistance = std::numeric_limits<std::uint32_t>::max();

  /// The place of a device relative to a node.
  struct Proximity {
    std::uint32_t distance = kUnknownDistance;
    bool same_package = false;
    bool is_local = false;
    double nearness = 0;
  };
  /// The place of a node relative to all devices.
  struct NodeLocality {
    std::size_t local_devices = 0;
    double nearness = 0;
  };

  std::string remote_node_text(const DeviceLocality& device) const;
  static std::string notes_text(const std::vector<std::string>& notes);
  Proximity proximity_of(const DeviceLocality& device, std::uint32_t node) const;
  void add_proximities();
  const Proximity& proximity(std::size_t device, std::uint32_t node) const {
    return proximities_[node * devices_.size() + device];
  }
  Nodes best_nodes(Nodes nodes) const;
  /// Lowers the score where only a part of the container's CPUs can be local to a device.
  void account_for_cpus(LocalityScore& score, const Nodes& nodes, topolet_set free) const;
  std::uint32_t distance_to(std::size_t device, const Nodes& nodes) const;
  static double nearness_at_distance(std::uint32_t distance);
  bool is_in_same_package(std::size_t device, const Nodes& nodes) const;
  sdk::Set full_local_nodes(const topolet_candidate& candidate, const Nodes& usable) const;
  sdk::Set free_on(std::uint32_t node) const;
  /// `assignable`: how many CPUs the container could have there.
  std::string describe(const std::string& where, const LocalityScore& score, std::size_t assignable) const;
  std::string describe_remote(const LocalityScore& score) const;
  std::string candidate_text(const topolet_candidate& candidate, const CandidateLocality& locality) const;

  const topolet_request& request_;
  const topolet_topology& topology_;
  const CpuNodes nodes_;
  const sdk::CoreMap core_map_;
  const std::size_t threads_per_core_;
  const bool whole_cores_;
  std::vector<DeviceLocality> devices_;
  std::vector<Proximity> proximities_;  ///< of each node to each device
  std::vector<NodeLocality> node_localities_;
  std::vector<Closeness> closeness_;  ///< of each pair of devices
  std::string_view noun_;
  std::string notes_;
  std::vector<std::pair<std::uint32_t, std::string>> node_texts_;  ///< nearest node first
};

}  // namespace topolet::gpu
