// The result of a decision. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"

namespace topolet {

enum class Mode : std::uint8_t {
  kExclusive,  ///< CPUs of its own
  kShared,     ///< in the pool, with all others
  kReserved,   ///< in the pool and on the reserved CPUs, for reserved namespaces
  kForeign,    ///< seen but not placed
};

std::string_view to_string(Mode mode);  // "exclusive", "shared", "reserved", "foreign"

/// Fields of a CreateContainer request that are added to it; what the pod sets itself stays.
struct AddedFields {
  std::vector<std::pair<std::string, std::string>> env;          ///< each name once
  std::vector<std::pair<std::string, std::string>> annotations;  ///< each key once

  friend bool operator==(const AddedFields&, const AddedFields&) = default;
};

struct Placement {
  Mode mode = Mode::kShared;
  CpuSet cpus;             ///< the CPUs to set
  CpuSet withheld;         ///< held for the container and run on by nobody
  NodeSet mems;            ///< memory nodes to set; empty = leave them alone
  AddedFields added = {};  ///< counts at the container's creation only; not kept over a restart

  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace topolet
