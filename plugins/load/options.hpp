// The configuration of the load plugin.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace topolet::load_policy {

struct PolicyOptions {
  bool relieves = true;  ///< containers leave nodes that cannot give them what they use
  /// A container that waits for a CPU for so much of the time lacks some; 0: none does.
  std::int64_t pressure_permille = 250;
  /// BestEffort containers give way where they are: nobody needs to move them.
  bool besteffort_gives_way = true;
  /// The namespaces whose pods may have what others pay for (placement.exclusive-namespaces and
  /// placement.reserved-namespaces), as patterns.
  std::vector<std::string> taking_namespaces = {};
};

PolicyOptions read_options(const sdk::Options& options);

}  // namespace topolet::load_policy
