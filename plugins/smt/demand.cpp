#include "plugins/smt/demand.hpp"

#include <algorithm>
#include <string_view>

namespace topolet::smt {
namespace {

void set_isolation(std::string_view annotation, const PolicyOptions& options, Demand& demand) {
  const bool requested = annotation == kIsolate;
  if (requested && demand.exclusive_cpus == 0) {
    demand.ineffective_annotation = "topolet.io/smt = isolate has no effect: the container has no exclusive CPUs";
    return;
  }
  if (options.isolate_siblings == IsolateSiblings::kOff) {
    if (requested) demand.ineffective_annotation = "topolet.io/smt = isolate has no effect: isolate-siblings = off";
    return;
  }
  const bool by_option = options.isolate_siblings == IsolateSiblings::kExclusive && annotation != "share";
  demand.isolated = demand.exclusive_cpus > 0 && (requested || by_option);
  if (demand.isolated) demand.isolated_by = requested ? "topolet.io/smt = isolate" : "isolate-siblings = exclusive";
}

/// The CPUs that the pod requests less those that its exclusive containers have or are getting. The request of the pod
/// does not tell how much of it is for containers that share CPUs, so these are counted, too.
std::size_t rest_of_pod_cpus(const topolet_request& request, std::size_t own_cpus) {
  const topolet_workload& workload = *request.workload;
  if (workload.pod_demand == nullptr) return 0;
  std::size_t placed = own_cpus;
  for (const topolet_ledger_entry& entry : sdk::entries(*request.ledger)) {
    const bool is_of_pod = sdk::text(entry.pod_uid) == sdk::text(workload.pod_uid);
    if (is_of_pod && entry.mode == TOPOLET_MODE_EXCLUSIVE) placed += sdk::size_of(entry.cpus);
  }
  const std::int64_t milli = std::max<std::int64_t>(0, workload.pod_demand->cpu_request_milli);
  const auto requested = static_cast<std::size_t>(milli / 1000);
  return requested > placed ? requested - placed : 0;
}

bool has_heavy_container(const topolet_ledger& ledger, const Profiles& profiles) {
  const auto entries = sdk::entries(ledger);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].mode != TOPOLET_MODE_FOREIGN && profiles.of_entry(i).profile == Profile::kHeavy) return true;
  }
  return false;
}

}  // namespace

Demand demand_of(const topolet_request& request, const PolicyOptions& options, const Profiles& profiles) {
  const topolet_kvs settings = request.workload->settings;
  Demand demand;
  demand.annotation_error = sdk::setting_error(settings, kSmtAnnotation, {kIsolate, "share"});
  if (demand.annotation_error.empty()) {
    demand.annotation_error = sdk::setting_error(settings, kCpuProfileAnnotation, {"heavy", "light"});
  }
  if (!demand.annotation_error.empty()) return demand;
  demand.exclusive_cpus = request.exclusive != 0 ? request.exclusive_cpus : 0;
  set_isolation(sdk::value_of(settings, kSmtAnnotation), options, demand);
  demand.whole_cores = sdk::has_flag(request, TOPOLET_REQUEST_WHOLE_CORES) && demand.exclusive_cpus > 0;
  if (sdk::has_flag(request, TOPOLET_REQUEST_POD_SCOPE) && demand.isolated) {
    demand.rest_of_pod_cpus = rest_of_pod_cpus(request, demand.exclusive_cpus);
  }
  if (options.pair != Pair::kOff) {
    LoadProfile own = profiles.of_newcomer();
    demand.profile = own.profile;
    demand.busy_hours = own.busy_hours;
    demand.profile_reason = std::move(own.reason);
    demand.avoids_heavy =
        demand.profile == Profile::kUnknown && requests_cpus(request) && has_heavy_container(*request.ledger, profiles);
  } else if (annotated_profile(settings) != Profile::kUnknown && demand.ineffective_annotation.empty()) {
    demand.ineffective_annotation = "topolet.io/cpu-profile has no effect: pair = false";
  }
  return demand;
}

}  // namespace topolet::smt
