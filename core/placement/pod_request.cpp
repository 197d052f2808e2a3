#include "core/placement/pod_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"

namespace topolet::placement {
namespace {

/// The runtime is told shares, which loses up to a thousandth of a CPU in each container, and a minimum of two shares.
constexpr std::int64_t kLostMilli = 2;

std::int64_t rest(std::int64_t of_pod, std::int64_t beside) { return std::max<std::int64_t>(0, of_pod - beside); }

bool is_of_pod(const Workload& workload, std::int64_t beside_milli) {
  const std::int64_t own = workload.demand.cpu_request_milli;
  const std::int64_t of_pod = workload.pod_demand->cpu_request_milli;
  if (of_pod <= 0 || workload.demand.cpu_request_certainty != Certainty::kTold) return false;
  if (own == 0) return workload.qos == Qos::kGuaranteed;
  if (is_cpu_request_unknown(workload.demand) || is_cpu_request_unknown(*workload.pod_demand)) return false;
  return own > of_pod + kLostMilli || (own + kLostMilli >= of_pod && beside_milli > kLostMilli);
}

}  // namespace

Workload with_request_of_pod(Workload workload, const RequestedBeside& beside) {
  if (!workload.pod_demand || !workload.kubelet_cpus.empty() || !is_of_pod(workload, beside.cpu_milli)) return workload;
  const Demand& of_pod = *workload.pod_demand;
  Demand& demand = workload.demand;
  const std::int64_t milli = rest(of_pod.cpu_request_milli, beside.cpu_milli);
  // Where nothing is left for it, a little counts: it is placed with the others of its pod, and not anywhere.
  demand.cpu_request_milli = milli <= kLostMilli ? 1 : milli;
  demand.cpu_request_certainty = Certainty::kOfPod;
  const bool has_own_memory =
      demand.memory_request_bytes > 0 && demand.memory_request_bytes < of_pod.memory_request_bytes;
  if (of_pod.memory_request_bytes > 0 && !has_own_memory)
    demand.memory_request_bytes = rest(of_pod.memory_request_bytes, beside.memory_bytes);
  return workload;
}

std::string describe_request_of_pod(const Workload& workload) {
  const bool has_own =
      workload.demand.cpu_request_milli > 0 && workload.demand.cpu_request_certainty != Certainty::kOfPod;
  if (has_own || !workload.pod_demand || workload.pod_demand->cpu_request_milli <= 0) return "";
  const std::int64_t milli = workload.pod_demand->cpu_request_milli;
  if (milli % 1000 == 0)
    return fmt::format("; its pod requests {} as a whole", counted(static_cast<std::size_t>(milli / 1000), "CPU"));
  return fmt::format("; its pod requests {:g} CPUs as a whole", static_cast<double>(milli) / 1000);
}

}  // namespace topolet::placement
