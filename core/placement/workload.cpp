#include "core/placement/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace topolet::placement {

std::string_view to_string(Qos qos) {
  switch (qos) {
    case Qos::kGuaranteed:
      return "guaranteed";
    case Qos::kBurstable:
      return "burstable";
    case Qos::kBestEffort:
      return "besteffort";
    case Qos::kUnknown:
      return "unknown";
  }
  return "?";
}

std::string_view to_string(Certainty certainty) {
  switch (certainty) {
    case Certainty::kTold:
      return "told";
    case Certainty::kEstimated:
      return "estimated";
    case Certainty::kUnknown:
      return "unknown";
    case Certainty::kOfPod:
      return "pod";
  }
  return "?";
}

namespace {

std::int64_t needed_memory(const Demand& demand) {
  return demand.memory_request_bytes > 0 ? demand.memory_request_bytes : demand.memory_limit_bytes;
}

}  // namespace

bool is_cpu_request_unknown(const Demand& demand) {
  return demand.cpu_request_milli == kMostMilliInShares && demand.cpu_limit_milli == 0;
}

bool needs_more_memory(const Demand& before, const Demand& after) {
  if (needed_memory(after) > needed_memory(before)) return true;
  return std::any_of(after.hugepage_limit_bytes.begin(), after.hugepage_limit_bytes.end(), [&](const auto& pages) {
    const auto had = before.hugepage_limit_bytes.find(pages.first);
    return pages.second > (had == before.hugepage_limit_bytes.end() ? 0 : had->second);
  });
}

bool is_unknown(const Workload& workload) {
  return workload.qos == Qos::kUnknown || workload.demand.cpu_request_certainty == Certainty::kUnknown;
}

std::string display_name(std::string_view pod_namespace, std::string_view pod, std::string_view container) {
  return fmt::format("{}/{}/{}", pod_namespace, pod, container);
}

std::string display_name(const Workload& workload) {
  return display_name(workload.pod_namespace, workload.pod_name, workload.key.name);
}

}  // namespace topolet::placement
