// Made-up machines: common ones, and odd ones that exist too.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/topology/topology.hpp"

namespace topolet::plugin_checker {

struct Machine {
  std::string name;  ///< such as "smt-off"
  std::shared_ptr<const topology::Topology> topology;
};

std::vector<Machine> make_machines();

}  // namespace topolet::plugin_checker
