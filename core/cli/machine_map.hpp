// A map, drawn in letters, of the containers that hold each CPU.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"

namespace topolet::cli {

/// The contents of a map: the machine, and the containers that have CPUs for themselves or keep some idle.
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
  CpuSet occupied;  ///< used by something other than containers
  std::vector<Holder> holders;
  /// Thousandths of each CPU that are used, where that is known: for a second layer. None: there is no such layer.
  std::optional<std::map<std::uint32_t, std::int64_t>> used_milli = {};
};

/// A line for each NUMA node with its cores in brackets and a sign for each CPU by ascending OS index, at most 100
/// columns wide, and what the signs mean. The second layer, if there is one, has a line below each: the tenths that are
/// used of each CPU.
std::string draw(const MachineMap& map);

/// Returns an array with an object for each CPU: `cpu`, `node`, `core` (its lowest CPU), `use` (`pool`, `exclusive`,
/// instead of it `overruled`, `drifted` and `overlapped` if it was seen not to be exclusive, `withheld`, `reserved`,
/// `isolated`, `occupied`, `not-allowed` or `offline`) and `by`, the container that has it exclusively or keeps it
/// idle; with the second layer, `used_milli`. Unknown values are null.
nlohmann::ordered_json to_json(const MachineMap& map);

}  // namespace topolet::cli
