#include "core/placement/workload.hpp"

#include "core/placement/placement.hpp"

namespace topolet {

std::string_view to_string(Qos qos) {
  switch (qos) {
    case Qos::kGuaranteed:
      return "guaranteed";
    case Qos::kBurstable:
      return "burstable";
    case Qos::kBestEffort:
      return "besteffort";
  }
  return "?";
}

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

}  // namespace topolet
