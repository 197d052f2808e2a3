// The part of the reconciler that takes containers into the ledger: those of creates in doubt, and those that were
// created without topolet.
#include "core/engine/converge/reconciler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/log.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/memory_nodes.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/settings.hpp"
#include "core/placement/validate.hpp"

namespace topolet::engine {
namespace {

/// Describes, for people, how a container with an incompletely known demand is counted; empty if the demand is known.
std::string describe_demand(const placement::Workload& workload) {
  const placement::Demand& demand = workload.demand;
  const double cpus = static_cast<double>(demand.cpu_request_milli) / 1000;
  if (is_unknown(workload))
    return fmt::format("neither the runtime nor the kernel tells what it requests{}; it counts as {:g} {}",
                       workload.qos == placement::Qos::kUnknown ? " or its QoS class" : "", cpus,
                       demand.cpu_request_milli == 1000 ? "CPU" : "CPUs");
  if (demand.cpu_request_certainty == placement::Certainty::kEstimated)
    return fmt::format("its CPU request is read from its cpu.weight, as at most {:g}", cpus);
  return {};
}

/// A Guaranteed container has a CPU limit, which is its request. Where the runtime was told that it has no quota, that
/// was topolet's doing; a kubelet that sets no quotas leaves that out. Fills the limit in.
bool has_dropped_quota(const operations::ContainerDetail& detail, placement::Workload& workload) {
  placement::Demand& demand = workload.demand;
  const bool has_none = detail.told.cpu_quota_us.value_or(0) < 0 && demand.cpu_limit_milli == 0;
  if (!has_none || workload.qos != placement::Qos::kGuaranteed) return false;
  demand.cpu_limit_milli = demand.cpu_request_milli;
  demand.cpu_period_us = detail.told.cpu_period_us.value_or(0);
  return true;
}

std::string joined(std::string reason, const std::string& more) {
  return more.empty() ? reason : std::move(reason) + "; " + more;
}

}  // namespace

/// Who a listed container is, as far as the list and its sandbox tell.
placement::Workload Reconciler::identify(const operations::ContainerInfo& container) const {
  placement::Workload workload;
  workload.key.name = container.name;
  workload.key.attempt = container.attempt;
  workload.key.sandbox_id = container.sandbox_id;
  workload.key.pod_uid = container.pod_uid;
  workload.pod_name = container.pod_name;
  workload.pod_namespace = container.pod_namespace;
  if (const Pod* pod = deps_.committer.ledger().find_pod(container.sandbox_id); pod != nullptr) {
    workload.key.pod_uid = pod->sandbox.pod_uid;
    workload.pod_name = pod->sandbox.pod_name;
    workload.pod_namespace = pod->sandbox.pod_namespace;
    workload.runtime_handler = pod->sandbox.runtime_handler;
    workload.pod_annotations = pod->sandbox.annotations;
  }
  const Ledger& ledger = deps_.committer.ledger();
  const Allocation* known = ledger.find_by_container(container.id);
  if (known == nullptr) known = ledger.find_announced(container.sandbox_id, container.id);
  if (known != nullptr) {
    workload.key = known->workload.key;
  } else if (is_of_another(workload.key, container.id)) {
    workload.key.attempt = ledger.next_attempt(container.sandbox_id, container.name);
  }
  return workload;
}

/// The engine may have counted fewer attempts than whoever numbers them for the runtime.
bool Reconciler::is_of_another(const placement::ContainerKey& key, const std::string& container_id) const {
  const Allocation* allocation = deps_.committer.ledger().find(key);
  return allocation != nullptr && !allocation->container_id.empty() && allocation->container_id != container_id;
}

placement::Workload Reconciler::workload_of(const operations::ContainerDetail& detail) const {
  placement::Workload workload = detail.workload;
  placement::Workload identity = identify(detail.info);
  workload.key = std::move(identity.key);
  workload.pod_name = std::move(identity.pod_name);
  workload.pod_namespace = std::move(identity.pod_namespace);
  workload.runtime_handler = std::move(identity.runtime_handler);
  workload.pod_annotations = std::move(identity.pod_annotations);
  // It runs whatever its annotations say.
  if (Result<placement::Settings> settings = deps_.placer.read_settings(workload); settings) {
    workload.settings = std::move(settings->values);
  }
  workload.annotations = deps_.placer.annotations_to_keep(workload.annotations);
  // The cpuset in the runtime's record may be topolet's own rather than the kubelet's. If it is the kubelet's, the
  // kubelet will send it again.
  workload.kubelet_cpus = {};
  return workload;
}

void Reconciler::adopt_all(const PassPtr& pass) {
  release_without_pod(pass);
  // Containers for exclusive CPUs come first, so that shared ones find the pool as it will be; of each kind the running
  // ones, because what runs wins over what was only decided.
  const auto rank = [this](const operations::ContainerDetail& detail) {
    const bool running = detail.info.state == operations::ContainerState::kRunning;
    const bool is_for_exclusive_cpus =
        whole_cpus(detail.workload) > 0 || is_known_from_kubelet(identify(detail.info).key);
    return (is_for_exclusive_cpus ? 2 : 0) + (running ? 1 : 0);
  };
  std::stable_sort(pass->found.begin(), pass->found.end(),
                   [&rank](const operations::ContainerDetail& a, const operations::ContainerDetail& b) {
                     return rank(a) > rank(b);
                   });
  for (const operations::ContainerDetail& detail : pass->found) {
    const Ledger& ledger = deps_.committer.ledger();
    if (ledger.find_by_container(detail.info.id) != nullptr) continue;
    const Allocation* allocation = ledger.find(identify(detail.info).key);
    if (allocation == nullptr) {
      adopt(pass, detail);
    } else if (allocation->phase == Phase::kInDoubt) {
      bind_discovered(pass, detail);
    }
  }
  deps_.committer.when_durable([this, pass] {
    for (const auto& open_queue : pass->open_queues) open_queue();
    end({});
  });
}

/// Who holds some of `cpus` and runs nowhere: creates in doubt, and containers that have ended. Only what runs
/// overrules.
std::vector<placement::ContainerKey> Reconciler::overruled_by(const PassPtr& pass,
                                                              const operations::ContainerDetail& detail,
                                                              const placement::ContainerKey& key,
                                                              const CpuSet& cpus) const {
  std::vector<placement::ContainerKey> keys;
  if (detail.info.state != operations::ContainerState::kRunning) return keys;
  for (const placement::ContainerKey& doubtful : pass->in_doubt) {
    const Allocation* allocation = deps_.committer.ledger().find(doubtful);
    if (allocation == nullptr || allocation->phase != Phase::kInDoubt || doubtful == key) continue;
    if (allocation->dedicated_cpus().intersects(cpus)) keys.push_back(doubtful);
  }
  for (const placement::ContainerKey& kept : deps_.committer.ledger().kept()) {
    const bool is_its_own = kept.pod_uid == key.pod_uid && kept.name == key.name;
    const bool intersects = deps_.committer.ledger().find(kept)->dedicated_cpus().intersects(cpus);
    if (intersects && !is_its_own) keys.push_back(kept);
  }
  return keys;
}

/// Tells whether the container would have got exactly as many exclusive CPUs, and nobody holds these but creates in
/// doubt and containers that have ended.
bool Reconciler::may_keep_exclusively(const PassPtr& pass, const operations::ContainerDetail& detail,
                                      const placement::Workload& workload, const CpuSet& cpus) const {
  std::optional<Ledger> trial;
  const Ledger& ledger =
      ledger_without(deps_.committer.ledger(), overruled_by(pass, detail, workload.key, cpus), trial);
  return deps_.placer.may_keep_exclusively(ledger, workload, cpus);
}

/// Returns true if no other container was seen on the CPUs.
bool Reconciler::runs_alone(const PassPtr& pass, const operations::ContainerDetail& detail, const CpuSet& cpus) const {
  const Ledger& ledger = deps_.committer.ledger();
  const auto is_other_there = [&](const operations::ContainerDetail& other) {
    return other.info.id != detail.info.id && observed_cpus(other).intersects(cpus);
  };
  const auto is_known_there = [&](const std::string& id) {
    const Allocation* known = ledger.find_by_container(id);
    return known != nullptr && known->placement.cpus.intersects(cpus);
  };
  return std::none_of(pass->found.begin(), pass->found.end(), is_other_there) &&
         std::none_of(pass->bound.begin(), pass->bound.end(), is_known_there);
}

/// Returns the workload of a container that has its CPUs to itself because its annotation had its request rounded up
/// when it was created, and does not any more: what runs keeps that.
std::optional<placement::Workload> Reconciler::rounded_before(const PassPtr& pass,
                                                              const operations::ContainerDetail& detail,
                                                              const placement::Workload& workload,
                                                              const CpuSet& cpus) const {
  placement::Workload rounded = with_rounded_request(workload);
  const bool kept = rounded.settings != workload.settings &&
                    detail.info.state == operations::ContainerState::kRunning &&
                    may_keep_exclusively(pass, detail, rounded, cpus) && runs_alone(pass, detail, cpus);
  return kept ? std::optional(std::move(rounded)) : std::nullopt;
}

/// The CPUs that the kubelet gave to the container alone before topolet came, if it runs there and can have them alone;
/// none otherwise. They are its own whatever the container would get here: the kubelet also knows what the runtime does
/// not tell, and may have left fewer shared CPUs, or given some to the system's pods. But where nobody is to have any
/// (placement.exclusive = never), it has none either.
CpuSet Reconciler::cpus_from_kubelet(const PassPtr& pass, const operations::ContainerDetail& detail,
                                     const placement::Workload& workload, const CpuSet& runs_on) const {
  if (!is_known_from_kubelet(workload.key)) return {};
  if (deps_.kubelet_cpus.at({workload.key.pod_uid, workload.key.name}) != runs_on) return {};
  placement::PlacementRules rules = deps_.placer.rules();
  if (rules.exclusive == placement::ExclusiveRule::kNever) return {};
  rules.min_shared_cpus = 0;
  std::optional<Ledger> trial;
  const Ledger& ledger =
      ledger_without(deps_.committer.ledger(), overruled_by(pass, detail, workload.key, runs_on), trial);
  const placement::Placement alone{placement::Mode::kExclusive, runs_on, {}, {}};
  return validate(alone, ledger.snapshot(&workload.key), rules) ? runs_on : CpuSet();
}

/// A create in doubt was made. It stays where it was decided, unless it runs alone elsewhere.
void Reconciler::bind_discovered(const PassPtr& pass, const operations::ContainerDetail& detail) {
  const Ledger& ledger = deps_.committer.ledger();
  const placement::Workload workload = workload_of(detail);
  const Allocation& allocation = *ledger.find(workload.key);
  const CpuSet runs_on = observed_cpus(detail);
  const bool runs = detail.info.state == operations::ContainerState::kRunning;
  if (runs && runs_on != allocation.placement.cpus && may_keep_exclusively(pass, detail, workload, runs_on)) {
    return adopt_exclusively(pass, detail, workload, runs_on);
  }
  const CpuSet may_use = runs_on | deps_.mover.footprint(detail.info.id);
  deps_.committer.commit(event::CreateDiscovered{workload.key, detail.info, may_use, may_be_starting(detail)},
                         [this, id = detail.info.id, key = workload.key] {
                           deps_.mover.open_queue(id, std::nullopt);
                           deps_.rebalancer.catch_up(key);
                         });
}

void Reconciler::adopt(const PassPtr& pass, const operations::ContainerDetail& detail) {
  event::Adopted adopted{workload_of(detail),    {}, detail.info, AuditEvent::kAdopted, observed_cpus(detail), {},
                         may_be_starting(detail)};
  const placement::Workload& workload = adopted.workload;
  placement::Decision& decision = adopted.plan.decision;
  if (runs_in_cgroup_of_pod(deps_.cpusets.cgroups_of(detail.info.id), detail.info.id, workload.key))
    deps_.placed_handlers.note_without_cgroup(workload.runtime_handler, detail.info.id);
  if (const std::string obstacle = deps_.placed_handlers.obstacle(workload.runtime_handler); !obstacle.empty()) {
    decision.placement.mode = placement::Mode::kForeign;
    decision.placement.cpus = cpus_from_kubelet(pass, detail, workload, adopted.observed_cpus);
    decision.reason = reason_not_placed(workload, obstacle);
    decision.reason_code = placement::reason_code::kHandlerNotPlaced;
    adopted.audit_event = AuditEvent::kForeign;
    adopted.warnings = {describe_foreign(workload, obstacle)};
    warn_once_a_pod(workload, adopted.warnings.front());
    return deps_.committer.commit(std::move(adopted));
  }
  if (const CpuSet given = cpus_from_kubelet(pass, detail, workload, adopted.observed_cpus); !given.empty()) {
    return adopt_exclusively(pass, detail, workload, given, "the kubelet had given to it");
  }
  // If it has exactly as many CPUs as it would get exclusively, they count as exclusive, whoever set them.
  if (may_keep_exclusively(pass, detail, workload, adopted.observed_cpus))
    return adopt_exclusively(pass, detail, workload, adopted.observed_cpus);
  if (const auto rounded = rounded_before(pass, detail, workload, adopted.observed_cpus))
    return adopt_exclusively(pass, detail, *rounded, adopted.observed_cpus);
  if (is_unknown(workload) && share_what_it_has(workload, adopted.observed_cpus, decision)) {
    decision.reason = joined(origin_of(pass, detail) + "; it shares the CPUs that it had", describe_demand(workload));
    return commit_adopted(std::move(adopted), detail);
  }
  adopted.plan = plan_shared(detail, workload, adopted.observed_cpus);
  if (decision.denied) {
    return deps_.log.error("container {} was not created through topolet and cannot be placed: {}", detail.info.id,
                           decision.reason);
  }
  decision.reason_code = placement::reason_code::kFoundRunning;
  decision.reason = joined(origin_of(pass, detail) + "; " + decision.reason, describe_demand(workload));
  commit_adopted(std::move(adopted), detail);
}

/// Where its memory is bound, by whomever; none where it may be on every node.
NodeSet Reconciler::bound_memory_nodes(const operations::ContainerDetail& detail) const {
  const bool is_bound = !placement::nodes_with_memory(*deps_.placer.topology()).is_subset_of(detail.mems);
  return is_bound ? detail.mems : NodeSet();
}

/// Beside its memory, which stays where it is bound, if it may share CPUs there.
Plan Reconciler::plan_shared(const operations::ContainerDetail& detail, const placement::Workload& workload,
                             const CpuSet& runs_on) const {
  Placer::Constraints constraints;
  constraints.occasion = placement::Occasion::kAdopt;
  constraints.container_id = detail.info.id;
  constraints.had = {runs_on, {}, detail.mems};
  constraints.only_shared = true;
  constraints.keep_nodes = bound_memory_nodes(detail) & deps_.placer.candidates().back().nodes;
  Plan plan = deps_.placer.plan(deps_.committer.ledger(), workload, constraints);
  if (!plan.decision.denied || constraints.keep_nodes.empty()) return plan;
  constraints.keep_nodes = {};
  return deps_.placer.plan(deps_.committer.ledger(), workload, constraints);
}

/// Says that nobody knows who created a container that was there at the start, where the database does not know.
std::string Reconciler::origin_of(const PassPtr& pass, const operations::ContainerDetail& detail) const {
  const bool was_there = pass->is_first || there_at_start_.count(detail.info.id) != 0;
  if (!was_there || deps_.why_unknown.empty()) return "found in the runtime, not created through topolet";
  const bool runs = detail.info.state == operations::ContainerState::kRunning;
  return fmt::format("already {}; {}", runs ? "running" : "created", deps_.why_unknown);
}

/// It shares the CPUs on which it runs, as far as nobody has them alone. False where nothing of them is shared.
bool Reconciler::share_what_it_has(const placement::Workload& workload, const CpuSet& runs_on,
                                   placement::Decision& decision) const {
  const Ledger& ledger = deps_.committer.ledger();
  const placement::Mode mode = shared_mode(workload, deps_.placer.rules());
  const CpuSet within = runs_on.empty() ? ledger.inventory().allowed : runs_on;
  const CpuSet cpus = shared_cpus(mode, within, ledger.pool(), ledger.free_reserved(), true);
  if (cpus.empty()) return false;
  decision.placement = {mode, cpus, {}, {}};
  decision.within = within;
  decision.nodes = deps_.placer.topology()->nodes_of(within);
  decision.reason_code = placement::reason_code::kFoundRunning;
  return true;
}

/// One of which not all was known, as of a container that had no process yet: perhaps it is told now. Its CPUs stay.
void Reconciler::learn(const operations::ContainerDetail& detail, const Allocation& own) {
  placement::Workload now = own.workload;
  now.qos = detail.workload.qos;
  // An update may have told the request meanwhile.
  const bool is_told = own.workload.demand.cpu_request_certainty == placement::Certainty::kTold;
  if (!is_told || !is_unknown(detail.workload)) now.demand = detail.workload.demand;
  const bool is_more =
      !is_unknown(now) || (own.workload.qos == placement::Qos::kUnknown && now.qos != own.workload.qos);
  if (!is_more) return;
  event::DemandChanged changed{now.key, now.demand, joined("what it requests can be read now", describe_demand(now))};
  changed.qos = now.qos;
  deps_.committer.commit(std::move(changed));
}

void Reconciler::warn_once_a_pod(const placement::Workload& workload, const std::string& warning) const {
  const Pod* pod = deps_.committer.ledger().find_pod(workload.key.sandbox_id);
  if (pod != nullptr && pod->was_warned(warning)) return;
  deps_.log.warn("pod {}/{}: {}", workload.pod_namespace, workload.pod_name, warning);
}

/// Its runtime handler was not placed when it was created, and is now. It keeps its CPUs, and shares them from now on:
/// whoever gets some of them exclusively makes it leave these.
void Reconciler::place_foreign(const PassPtr& pass, const operations::ContainerDetail& detail, const Allocation& own) {
  const CpuSet runs_on = observed_cpus(detail);
  if (const CpuSet given = cpus_from_kubelet(pass, detail, own.workload, runs_on); !given.empty())
    return adopt_exclusively(pass, detail, own.workload, given, "the kubelet had given to it");
  if (may_keep_exclusively(pass, detail, own.workload, runs_on))
    return adopt_exclusively(pass, detail, own.workload, runs_on);
  event::Adopted adopted{own.workload, {}, detail.info, AuditEvent::kAdopted, runs_on, {}, may_be_starting(detail)};
  const Ledger& ledger = deps_.committer.ledger();
  placement::Decision& decision = adopted.plan.decision;
  decision.placement.mode = shared_mode(own.workload, deps_.placer.rules());
  decision.within = runs_on.empty() ? ledger.inventory().allowed : runs_on;
  decision.placement.cpus =
      shared_cpus(decision.placement.mode, decision.within, ledger.pool(), ledger.free_reserved(), false);
  decision.nodes = deps_.placer.topology()->nodes_of(decision.within);
  decision.reason_code = placement::reason_code::kFoundRunning;
  decision.reason = fmt::format("containers of runtime handler '{}' are placed now; it shares the CPUs that it had",
                                placement::handler_name(own.workload.runtime_handler));
  commit_adopted(std::move(adopted), detail);
}

void Reconciler::adopt_exclusively(const PassPtr& pass, const operations::ContainerDetail& detail,
                                   const placement::Workload& workload, const CpuSet& cpus, const char* which) {
  event::Adopted adopted{
      workload, {}, detail.info, AuditEvent::kAdopted, cpus, overruled_by(pass, detail, workload.key, cpus)};
  if (!is_known_from_kubelet(workload.key)) adopted.has_dropped_quota = has_dropped_quota(detail, adopted.workload);
  placement::Decision& decision = adopted.plan.decision;
  decision.placement = {placement::Mode::kExclusive, cpus, {}, {}};
  decision.nodes = deps_.placer.topology()->nodes_of(cpus);
  decision.reason_code = placement::reason_code::kFoundRunning;
  decision.reason = fmt::format("{}; it keeps the CPUs that {} exclusively", origin_of(pass, detail), which);
  commit_adopted(std::move(adopted), detail);
}

void Reconciler::commit_adopted(event::Adopted adopted, const operations::ContainerDetail& detail) {
  const placement::ContainerKey key = adopted.workload.key;
  const NodeSet bound = bound_memory_nodes(detail);
  const bool runs = detail.info.state == operations::ContainerState::kRunning || adopted.may_be_starting;
  NodeSet& mems = adopted.plan.decision.placement.mems;
  mems = placement::retained_memory_nodes(bound, mems, runs, deps_.placer.rules());
  adopted.bound_mems = bound;
  // topolet may have known it before, and a set that it was told then may still come into effect.
  adopted.observed_cpus |= deps_.mover.footprint(detail.info.id);
  deps_.committer.commit(std::move(adopted), [this, key, bound, recorded = Recorded(detail)] {
    const Allocation* now = deps_.committer.ledger().find(key);
    if (now == nullptr) return;
    const ContainerCpuset desired = desired_cpuset_of(*now);
    const bool is_told_mems = desired.mems.empty() || desired.mems == bound;
    const bool is_there =
        is_told_mems && is_applied(recorded, desired) && deps_.cpusets.check_kernel(recorded.id, desired).has_value();
    deps_.mover.open_queue(recorded.id, is_there ? std::optional(desired) : std::nullopt);
  });
  take_over_memory_high(key, detail.info.id);
}

}  // namespace topolet::engine
