#include "core/placement/placement.hpp"

namespace topolet::placement {

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::kExclusive:
      return "exclusive";
    case Mode::kShared:
      return "shared";
    case Mode::kReserved:
      return "reserved";
    case Mode::kForeign:
      return "foreign";
  }
  return "?";
}

CpuSet pool_for(Mode mode, const CpuSet& pool, const CpuSet& free_reserved) {
  return mode == Mode::kReserved ? pool | free_reserved : pool;
}

}  // namespace topolet::placement
