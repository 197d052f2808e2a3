#include "core/placement/workload.hpp"

#include <fmt/format.h>

namespace topolet::placement {

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

std::string display_name(std::string_view pod_namespace, std::string_view pod, std::string_view container) {
  return fmt::format("{}/{}/{}", pod_namespace, pod, container);
}

std::string display_name(const Workload& workload) {
  return display_name(workload.pod_namespace, workload.pod_name, workload.key.name);
}

}  // namespace topolet::placement
