// Machines as they exist, and as they should not but do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/topology/topology.hpp"

namespace topolet {

struct Machine {
  std::string name;  ///< such as "smt-off"
  std::shared_ptr<const Topology> topology;
};

std::vector<Machine> make_machines();

}  // namespace topolet
