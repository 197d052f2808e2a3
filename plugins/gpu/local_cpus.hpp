// Devices that are near to some CPUs of a node, or to CPUs without a node.
#pragma once

#include <topolet/policy.hpp>

#include <string>
#include <vector>

#include "plugins/gpu/division.hpp"
#include "plugins/gpu/judge.hpp"
#include "plugins/gpu/search.hpp"

namespace topolet::gpu {

/// A device and the CPUs that are local to it, where nodes say less.
struct NearCpus {
  std::string device;
  sdk::Set cpus;
  bool has_node = false;
};

std::vector<NearCpus> near_cpus_of(const topolet_topology& topology, const Sought& sought);

/// For devices that are all near to CPUs without a node: one verdict for each candidate, by the share of CPUs that are
/// local; none if one of them has a node.
std::vector<Verdict> judge_by_cpus(const topolet_request& request, const Sought& sought, const Rules& rules);

/// Of CPUs that may be taken for an exclusive container, by the number of devices; cores stay whole where they should.
std::vector<Share> share_by_cpus(const topolet_pick_request& picking, const Sought& sought, const Rules& rules);

/// Why the chosen CPUs are not local to a device that free ones are local to; empty if they are.
std::string shortcoming_by_cpus(const topolet_pick_request& picking, const Sought& sought);

}  // namespace topolet::gpu
