// Who holds which CPU, drawn in letters.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"

namespace topolet::cli {

/// What a map shows: the machine, and the containers that have CPUs for themselves or keep some idle.
struct MachineMap {
  struct Node {
    std::uint32_t os_index = 0;
    CpuSet cpus;
  };
  struct Holder {
    std::string name;
    bool is_exclusive = false;  ///< it has `cpus` for itself
    CpuSet cpus;
    CpuSet withheld;
    std::string lost = {};  ///< it was given `cpus` for itself, and was seen not to have them so: how, as modes say it
    CpuSet seen_on = {};    ///< where it was seen instead
  };
  std::vector<Node> nodes;    ///< that have CPUs
  NodeSet memory_only;        ///< the other nodes
  std::vector<CpuSet> cores;  ///< by their threads
  CpuSet online;
  CpuSet offline;
  CpuSet allowed;   ///< those that topolet may use
  CpuSet reserved;  ///< the system's
  CpuSet isolated;
  CpuSet occupied;  ///< used by what is no container
  std::vector<Holder> holders;
};

/// A line for each NUMA node with its cores in brackets and a sign for each CPU by ascending OS index, at most 100
/// columns wide, and what the signs mean.
std::string draw(const MachineMap& map);

/// An array with an object for each CPU: `cpu`, `node`, `core` (its lowest CPU), `use` (`pool`, `exclusive`,
/// `overruled`, `drifted` and `overlapped` in its place where it was seen not to be that, `withheld`, `reserved`,
/// `isolated`, `occupied`, `not-allowed` or `offline`) and `by`, the container that has it exclusively or keeps it
/// idle. What is not known is null.
nlohmann::ordered_json to_json(const MachineMap& map);

}  // namespace topolet::cli
