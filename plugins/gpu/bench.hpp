// What nodes are to the devices of one container.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/gpu/locality.hpp"
#include "plugins/gpu/search.hpp"

namespace topolet::gpu {

using Nodes = std::vector<std::uint32_t>;  // positions in the topology's nodes

/// What some nodes are to the devices.
struct Standing {
  double nearness = 0;  ///< 0 to 1 in the mean; 1 is local
  std::size_t local = 0;
  std::size_t local_cpus = 0;               ///< of an exclusive container's; all that it asks for at the most
  Closeness tier = Closeness::kSameSwitch;  ///< of the local devices, the two that are farthest apart
  double spread = 0;                        ///< share of the nodes that no device is local to
  std::uint32_t nearest = 0, farthest = 0;  ///< distances of the devices that are not local; 0: none
  bool in_package = false;                  ///< all of these are in the package of one of the nodes
  bool is_cut = false;                      ///< there are more nodes than it can be on

  /// 0 to 7; among nodes of the same nearness.
  std::int32_t shortfall() const;
};

/// Borrows the request.
class Bench {
 public:
  /// `whole_cores`: exclusive CPUs come in whole cores.
  Bench(const topolet_request& request, const Sought& sought, bool whole_cores);

  bool has_devices() const { return !devices_.empty(); }
  std::size_t devices() const { return devices_.size(); }
  const CpuNodes& nodes() const { return nodes_; }

  /// Threads of a core.
  std::size_t per_core() const { return per_core_; }
  /// On how many nodes the container can have CPUs of its own.
  std::size_t most_nodes() const;

  /// Those of the free CPUs that an exclusive container is given: where they come in whole cores, the CPUs of cores
  /// that are free as a whole, if they are enough.
  sdk::Set takeable(topolet_set free) const;

  /// Of nodes with these free CPUs. A container that cannot be on all of them is on the best ones for it.
  Standing standing(const Nodes& nodes, topolet_set free) const;
  /// However few CPUs there are.
  bool misses_one(const Nodes& nodes) const;
  bool is_home(std::size_t device, std::uint32_t node) const { return way(device, node).is_home; }
  bool is_home_of_any(std::uint32_t node) const { return local_to(node) > 0; }
  /// How many devices.
  std::size_t local_to(std::uint32_t node) const;
  /// 0 to 1; 1 is local.
  double nearness_to(std::size_t device, std::uint32_t node) const;
  /// Of all devices to one node, 0 to 1 in the mean.
  double nearness_of(std::uint32_t node) const;

  /// "2 of 3 GPUs"
  std::string share_text(std::size_t count) const;
  /// Why a candidate is worth what it is: its own standing, what others would be, and what is not counted.
  std::string reason(const topolet_candidate& candidate, const Nodes& usable, const Standing& standing) const;
  /// The same for one that is rejected. Of the many that are neither one node nor all, those that miss as much say the
  /// same, so that a denial stays readable.
  std::string refusal(const topolet_candidate& candidate, const Nodes& usable, const Standing& standing) const;
  std::string notes() const;
  /// For the reasons: each node alone, the nearest first.
  void compare_nodes();

 private:
  static constexpr std::uint32_t kUnknownDistance = std::numeric_limits<std::uint32_t>::max();

  struct Way {
    std::uint32_t distance = kUnknownDistance;
    bool in_package = false;
    bool is_home = false;
  };

  std::string detour_text(const Lodging& device) const;
  sdk::Set os_indices(const Nodes& nodes) const;
  void measure(const Lodging& device);
  const Way& way(std::size_t device, std::uint32_t node) const { return ways_[device * topology_.node_count + node]; }
  Nodes within_reach(const Nodes& nodes) const;
  /// Puts the standing right for CPUs that no device is local to, because there are too few others.
  void count_cpus(Standing& standing, const Nodes& nodes, topolet_set free) const;
  std::uint32_t distance_to(std::size_t device, const Nodes& nodes) const;
  static double nearness_at(std::uint32_t distance);
  bool is_in_package(std::size_t device, const Nodes& nodes) const;
  sdk::Set without_free_cpus(const topolet_candidate& candidate, const Nodes& usable) const;
  sdk::Set free_on(std::uint32_t node) const;
  /// `takeable`: how many CPUs it could have there.
  std::string text(const std::string& where, const Standing& standing, std::size_t takeable) const;
  std::string rest_text(const Standing& standing) const;
  /// What the candidate itself is.
  std::string own_text(const topolet_candidate& candidate, const Nodes& usable, const Standing& standing) const;

  const topolet_request& request_;
  const topolet_topology& topology_;
  const CpuNodes nodes_;
  const bool whole_cores_;
  const std::size_t per_core_;
  std::vector<Lodging> devices_;
  std::vector<Way> ways_;         ///< of each device to each node
  std::vector<Closeness> tiers_;  ///< of each pair of devices
  std::string_view noun_;
  std::vector<std::string> placeless_;  ///< devices, and why
  std::vector<std::string> notes_;
  std::vector<std::pair<std::uint32_t, std::string>> others_;
};

}  // namespace topolet::gpu
