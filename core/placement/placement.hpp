// The result of a decision. Plain values.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/index_set.hpp"

namespace topolet {

enum class Mode : std::uint8_t {
  kExclusive,  ///< CPUs of its own
  kShared,     ///< in the pool, with all others
  kReserved,   ///< in the pool and on the reserved CPUs, for reserved namespaces
  kForeign,    ///< seen but not placed
};

std::string_view to_string(Mode mode);  // "exclusive", "shared", "reserved", "foreign"

struct Placement {
  Mode mode = Mode::kShared;
  CpuSet cpus;      ///< the CPUs to set
  CpuSet withheld;  ///< held for the container and run on by nobody
  NodeSet mems;     ///< memory nodes to set; empty = leave them alone

  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace topolet
