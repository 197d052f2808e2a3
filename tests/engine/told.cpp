#include "tests/engine/told.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

namespace topolet::engine {
namespace {

using Fields = std::vector<std::pair<const char*, std::string>>;

std::string flag(bool value) { return value ? "yes" : ""; }

std::string time(std::chrono::milliseconds since) { return since.count() == 0 ? "" : std::to_string(since.count()); }

std::string preferred(const std::optional<Preferred>& value) {
  if (!value) return "";
  const Placement& placement = value->placement;
  return fmt::format("{} {} {} {} {}{}", to_string(placement.mode), placement.cpus.to_string(),
                     placement.withheld.to_string(), value->within.to_string(), value->nodes.to_string(),
                     value->whole ? " whole" : "");
}

Fields fields_of(const Allocation& allocation) {
  const Placement& placement = allocation.placement;
  return {{"phase", std::string(to_string(allocation.phase))},
          {"since", time(allocation.phase_since)},
          {"doubt", time(allocation.doubt_since)},
          {"stopping", flag(allocation.stopping)},
          {"container", allocation.container_id},
          {"demand", std::to_string(allocation.workload.demand.cpu_request_milli)},
          {"kubelet", allocation.workload.kubelet_cpus.to_string()},
          {"mode", std::string(to_string(placement.mode))},
          {"cpus", placement.cpus.to_string()},
          {"withheld", placement.withheld.to_string()},
          {"mems", placement.mems.to_string()},
          {"added", flag(placement.added != AddedFields())},
          {"within", allocation.within.to_string()},
          {"vacating", allocation.vacating.to_string()},
          {"alone", allocation.vacating_alone.to_string()},
          {"conflict", flag(allocation.conflict)},
          {"preferred", preferred(allocation.preferred)},
          {"arrived", allocation.arrived_cpus.to_string()},
          {"evaluated", allocation.evaluated_cpus.to_string()},
          {"restricted", flag(allocation.restricted)}};
}

std::string differences(const Allocation& before, const Allocation& after) {
  std::vector<std::string> told;
  const Fields now = fields_of(after);
  const Fields old = fields_of(before);
  for (std::size_t field = 0; field < now.size(); ++field) {
    if (now[field] == old[field]) continue;
    told.push_back(fmt::format("{} {}>{}", now[field].first, old[field].second, now[field].second));
  }
  return fmt::format("{}", fmt::join(told, ", "));
}

/// The attempt shows where it is not the first.
std::string name_of(const Allocation& allocation) {
  const ContainerKey& key = allocation.workload.key;
  return key.attempt == 0 ? key.name : fmt::format("{}#{}", key.name, key.attempt);
}

std::string tell(const Change& change) {
  std::string told = name_of(change.after ? *change.after : *change.before) + ":";
  if (!change.after) {
    told += " over";
    if (!change.cause.empty()) told += ": " + change.cause;
  } else if (!change.before) {
    // Against one that is as its key and its demand are.
    Allocation empty;
    empty.workload = change.after->workload;
    told += " new " + differences(empty, *change.after);
  } else {
    told += " " + differences(*change.before, *change.after);
  }
  if (change.audit) {
    told += " [" + change.audit->event;
    if (change.supersedes) told += " instead of " + std::to_string(*change.supersedes);
    told += "]";
  }
  if (change.outcome) told += " (" + change.outcome->state + ")";
  return told;
}

std::string tell(const Remark& remark) {
  return fmt::format("{} {}: {}", remark.audit.event, remark.decision,
                     remark.about ? name_of(*remark.about) : std::string("nobody"));
}

std::string tell(const PodChange& change) {
  if (!change.after) return "pod " + change.sandbox_id + ": forgotten";
  const Pod& pod = *change.after;
  std::string told = fmt::format("pod {}: nodes {}", change.sandbox_id, pod.nodes.to_string());
  for (const auto& [name, former] : pod.former) {
    told += fmt::format(", former {} {} {}", name, former.cpus.to_string(), former.withheld.to_string());
  }
  for (const auto& [name, denial] : pod.denied) {
    told += fmt::format(", denied {}#{} {}", name, denial.attempt, denial.decision);
  }
  for (const auto& [name, value] : pod.sandbox.annotations) told += fmt::format(", {}={}", name, value);
  return pod.sandbox.ready ? told : told + ", not ready";
}

}  // namespace

std::vector<std::string> tell(const Transition& transition) {
  std::vector<std::string> told;
  for (const Change& change : transition.changes) told.push_back(tell(change));
  for (const Remark& remark : transition.remarks) told.push_back(tell(remark));
  for (const PodChange& change : transition.pods) told.push_back(tell(change));
  for (const RepeatedDenial& repeated : transition.repeated) {
    told.push_back("denied again " + std::to_string(repeated.decision));
  }
  if (transition.pool != transition.pool_before || transition.records_pool) {
    told.push_back("pool " + transition.pool_before.to_string() + ">" + transition.pool.to_string());
  }
  return told;
}

}  // namespace topolet::engine
