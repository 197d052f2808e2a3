#include "tests/engine/transition_text.hpp"

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
  const placement::Placement& placement = value->placement;
  return fmt::format("{} {} {} {} {}{}{}", to_string(placement.mode), placement.cpus.to_string(),
                     placement.withheld.to_string(), value->within.to_string(), value->nodes.to_string(),
                     value->waits_for_all ? " whole" : "", value->is_due ? " due" : "");
}

std::string tags(const SharedStringMap& all) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : all) texts.push_back(key + "=" + value);
  return fmt::format("{}", fmt::join(texts, " "));
}

Fields fields_of(const Allocation& allocation) {
  const placement::Placement& placement = allocation.placement;
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
          {"added", flag(placement.added != placement::AddedFields())},
          {"within", allocation.within.to_string()},
          {"vacating", allocation.vacating.to_string()},
          {"alone", allocation.vacating_alone.to_string()},
          {"conflict", flag(allocation.conflict)},
          {"preferred", preferred(allocation.preferred)},
          {"arrived", allocation.arrived_cpus.to_string()},
          {"evaluated", allocation.evaluated_cpus.to_string()},
          {"restricted", flag(allocation.restricted)},
          {"squeezed", std::string(to_string(allocation.squeeze))},
          {"seen on", allocation.seen_on.to_string()},
          {"overlapped", allocation.overlapped.to_string()},
          {"overruled", allocation.overruled ? fmt::format("{} {}", allocation.overruled->since.count(),
                                                           allocation.overruled->ours_since.count())
                                             : std::string()},
          {"stuck", allocation.stuck ? allocation.stuck->cpus.to_string() : std::string()},
          {"tags", tags(allocation.workload.tags)},
          {"adopted", flag(allocation.adopted)},
          {"keeps mems", allocation.mems_to_keep.to_string()},
          {"moved from", allocation.moved_from ? allocation.moved_from->placement.cpus.to_string() : std::string()},
          {"narrowed to", allocation.narrowed_to.to_string()}};
}

std::string differences(const Allocation& before, const Allocation& after) {
  std::vector<std::string> text;
  const Fields now = fields_of(after);
  const Fields old = fields_of(before);
  for (std::size_t field = 0; field < now.size(); ++field) {
    if (now[field] == old[field]) continue;
    text.push_back(fmt::format("{} {}>{}", now[field].first, old[field].second, now[field].second));
  }
  return fmt::format("{}", fmt::join(text, ", "));
}

/// The attempt shows where it is not the first.
std::string id_of(const Allocation& allocation) {
  const placement::ContainerKey& key = allocation.workload.key;
  return key.attempt == 0 ? key.name : fmt::format("{}#{}", key.name, key.attempt);
}

std::string describe(const Change& change) {
  std::string text = id_of(change.after ? *change.after : *change.before) + ":";
  if (!change.after) {
    text += " over";
    if (!change.cause.empty()) text += ": " + change.cause;
  } else if (!change.before) {
    // Against one that is as its key and its demand are.
    Allocation empty;
    empty.workload = change.after->workload;
    empty.workload.tags = {};
    text += " new " + differences(empty, *change.after);
  } else {
    text += " " + differences(*change.before, *change.after);
  }
  if (change.audit) {
    text += " [";
    text += to_string(change.audit->event);
    if (change.supersedes) text += " instead of " + std::to_string(*change.supersedes);
    text += "]";
  }
  if (change.outcome) text += " (" + change.outcome->state + ")";
  return text;
}

std::string describe(const RecordedEvent& recorded) {
  return fmt::format("{} {}: {}", to_string(recorded.audit.event), recorded.decision,
                     recorded.subject ? id_of(*recorded.subject) : std::string("nobody"));
}

std::string describe(const PodChange& change) {
  if (!change.after) return "pod " + change.sandbox_id + ": forgotten";
  const Pod& pod = *change.after;
  std::string text = fmt::format("pod {}: nodes {}", change.sandbox_id, pod.nodes.to_string());
  for (const auto& [name, former] : pod.former) {
    text += fmt::format(", former {} {} {}", name, former.cpus.to_string(), former.withheld.to_string());
  }
  if (!pod.made.empty()) text += fmt::format(", made {}", fmt::join(pod.made, " "));
  for (const auto& [name, denial] : pod.denied) {
    text += fmt::format(", denied {}#{} {}", name, denial.attempt, denial.decision);
  }
  for (const auto& [name, value] : pod.sandbox.annotations) text += fmt::format(", {}={}", name, value);
  return pod.sandbox.ready ? text : text + ", not ready";
}

}  // namespace

std::vector<std::string> describe(const Transition& transition) {
  std::vector<std::string> text;
  for (const Change& change : transition.changes) text.push_back(describe(change));
  for (const RecordedEvent& recorded : transition.recorded_events) text.push_back(describe(recorded));
  for (const PodChange& change : transition.pods) text.push_back(describe(change));
  for (const RepeatedDenial& repeated : transition.repeated) {
    text.push_back("denied again " + std::to_string(repeated.decision));
  }
  if (transition.pool != transition.pool_before || transition.writes_pool) {
    text.push_back("pool " + transition.pool_before.to_string() + ">" + transition.pool.to_string());
  }
  return text;
}

}  // namespace topolet::engine
