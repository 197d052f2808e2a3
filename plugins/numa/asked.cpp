#include "plugins/numa/asked.hpp"

#include <algorithm>

namespace topolet::numa {
namespace {

constexpr std::string_view kAnnotation = "numa-policy";
constexpr std::size_t kShownBytes = 64;

std::optional<std::string_view> annotation(const topolet_workload& workload) {
  for (std::size_t i = workload.settings.count; i > 0; --i) {
    const topolet_kv& setting = workload.settings.items[i - 1];
    if (sdk::text(setting.key) == kAnnotation) return sdk::text(setting.value);
  }
  return std::nullopt;
}

/// What a pod wrote, fit for a line of a log.
std::string shown(std::string_view value) {
  std::string text(value.substr(0, kShownBytes));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return value.size() > kShownBytes ? text + "..." : text;
}

std::int64_t positive(std::int64_t amount) { return std::max<std::int64_t>(0, amount); }

void ask_for_pod(const topolet_workload& workload, Asked& asked) {
  if (workload.pod_demand == nullptr) {
    asked.note = "the pod's demand is not known: scope = container";
    return;
  }
  asked.pod_nodes = workload.pod_nodes;
  if (sdk::size_of(workload.pod_nodes) > 0) return;
  const std::int64_t milli = positive(workload.pod_demand->cpu_request_milli);
  // Parts of CPUs are those of containers that share.
  const auto cpus = static_cast<std::size_t>(milli / 1000);
  if (asked.exclusive && cpus > asked.cpus) asked.pod_cpus = cpus;
  if (!asked.exclusive && milli > asked.milli) asked.pod_milli = milli;
  const std::int64_t memory = memory_of(*workload.pod_demand);
  if (memory > asked.memory) asked.pod_memory = memory;
}

}  // namespace

Alignment alignment_of(const topolet_workload& workload, const PolicyOptions& options) {
  const auto value = annotation(workload);
  return value ? alignment_named(*value).value_or(options.policy) : options.policy;
}

Asked asked_of(const topolet_request& request, const PolicyOptions& options) {
  const topolet_workload& workload = *request.workload;
  Asked asked;
  asked.alignment = alignment_of(workload, options);
  if (const auto value = annotation(workload); value && !alignment_named(*value)) {
    asked.bad_annotation = "annotation topolet.io/numa-policy is '" + shown(*value) +
                           "'; allowed are none, best-effort, restricted and single-numa-node";
  }
  asked.exclusive = request.exclusive != 0 && request.exclusive_cpus > 0;
  asked.cpus = asked.exclusive ? request.exclusive_cpus : 0;
  if (workload.demand != nullptr) {
    const topolet_demand& demand = *workload.demand;
    asked.milli = asked.exclusive ? 0 : positive(demand.cpu_request_milli);
    asked.memory = memory_of(demand);
    asked.huge_pages = huge_pages_of(demand);
    asked.memory_bound = options.bind_memory && demand.memory_limit_bytes > 0;
  }
  if (options.scope == Scope::kPod && asked.alignment != Alignment::kNone && !asked.nothing()) {
    ask_for_pod(workload, asked);
  }
  return asked;
}

}  // namespace topolet::numa
