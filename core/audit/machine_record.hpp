// The machine as the audit tells it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::audit {

struct MachineRecord {
  struct Cpu {
    std::uint32_t cpu = 0;
    std::optional<std::uint32_t> node;
    std::uint32_t core = 0;           ///< the lowest CPU of its core
    std::optional<std::uint32_t> l3;  ///< the lowest CPU of those that share the cache
    std::optional<std::uint32_t> package;
  };
  struct Node {
    std::uint32_t node = 0;
    CpuSet cpus;
    std::int64_t memory_bytes = 0;  ///< 0 = unknown
    bool memory_only = false;
  };
  struct Device {
    std::string name;
    std::string address;  ///< of its PCI device; empty if it has none
    std::string kind;
    NodeSet nodes;
  };
  std::int64_t at_ms = 0;  ///< since when
  CpuSet allowed;
  CpuSet reserved;
  CpuSet isolated;
  std::vector<Cpu> cpus;
  std::vector<Node> nodes;
  std::vector<Device> devices;  ///< by address and name; none where a topoletd that did not record them has written
};

/// The machine at that time; the first that was recorded where that is later; nothing if none is recorded.
Result<std::optional<MachineRecord>> machine_at(const store::Database& database, std::int64_t at_ms);

/// The CPUs of a NUMA node at that time as a list. INVALID_ARGUMENT if there is no such node.
Result<std::string> cpus_of_node(const store::Database& database, std::uint32_t node, std::int64_t at_ms);

}  // namespace topolet::audit
