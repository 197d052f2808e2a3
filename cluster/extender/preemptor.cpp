#include "cluster/extender/preemptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/api/json_fields.hpp"
#include "cluster/extender/own_cpus.hpp"

namespace topolet::extender {
namespace {

using api::ApiAnswer;
using api::list_field;
using api::text_field;
using nlohmann::json;

constexpr std::size_t kMostRemembered = 1000;
/// Until all nodes are known.
constexpr std::chrono::milliseconds kLookSoon{20};

bool has_ended(const json& pod) {
  const std::string phase = text_field(pod, "status", "phase");
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

struct Preemptor::Call {
  PreemptionArgs args;
  RecentDemands::Read demand;
  OnPlanned on_planned;
  api::Api::Clock::time_point deadline{};
  bool wants_only_amounts = false;
  api::Amounts requests;
  std::optional<Budgets> budgets;
  std::deque<NodeVictims> left;  ///< to be looked at
  std::size_t underway = 0;
  std::vector<NodeVictims> planned;
  bool is_answered = false;
};

Preemptor::Preemptor(api::Api& api, SharedBook& shared, Options options, Log& log)
    : api_(api),
      shared_(shared),
      options_(std::move(options)),
      log_(log),
      budget_trouble_(
          "the PodDisruptionBudgets cannot be read, so that only victims are evicted that a scheduler offers", log) {
  api_.after(options_.look_every, [this, alive = is_alive_] {
    if (*alive) look_after_kept();
  });
}

void Preemptor::begin() {
  is_deciding_ = true;
  ++term_;
  in_vain_.clear();
  shared_.is_kept_known = false;
  api_.after(options_.longest_restore, [this, alive = is_alive_, term = term_] {
    if (*alive && term == term_) shared_.is_kept_known = true;
  });
  restore();
}

void Preemptor::end() {
  is_deciding_ = false;
  ++term_;
}

/// Returns true if pods were evicted for this one, which then waits for its zone; but not without end, and not again
/// and again. The pod itself may name its node before the answer was handled.
bool Preemptor::has_evicted_for(const Demand& demand) {
  const std::string& uid = demand.uid;
  const auto found = in_vain_.find(uid);
  if (found != in_vain_.end() && found->second >= options_.most_in_vain) return true;
  MutexLock lock(shared_.mutex);
  if (shared_.book.kept().has(demand.nominated_node, uid)) shared_.book.kept().nominate(uid, demand.nominated_node);
  const std::vector<Kept> kept = shared_.book.kept().of(uid);
  if (std::any_of(kept.begin(), kept.end(), [](const Kept& each) { return each.is_nominated; })) return true;
  shared_.book.kept().drop(uid);
  return false;
}

void Preemptor::preempt(PreemptionArgs args, RecentDemands::Read demand, OnPlanned on_planned) {
  if (!is_deciding_ || !*demand) return on_planned({});
  if (!(*demand)->is_for_zones()) return on_planned(args.nodes);
  if (has_evicted_for(**demand)) return on_planned({});
  const auto call = std::make_shared<Call>();
  call->args = std::move(args);
  call->demand = std::move(demand);
  call->on_planned = std::move(on_planned);
  call->deadline = api_.now() + options_.patience;
  const json pod = json::parse(call->args.pod_json, nullptr, false);
  call->wants_only_amounts = wants_only_amounts(pod);
  call->requests = api::read_pod(pod).effective_requests();
  call->left = {call->args.nodes.begin(), call->args.nodes.end()};
  std::stable_sort(call->left.begin(), call->left.end(), [](const NodeVictims& a, const NodeVictims& b) {
    return std::pair(a.budget_violations, a.uids.size()) < std::pair(b.budget_violations, b.uids.size());
  });
  api_.after(options_.patience, [this, alive = is_alive_, call] {
    if (*alive) finish(call);
  });
  read_budgets(call);
}

void Preemptor::read_budgets(const Shared& call) {
  api::ApiRequest request{.verb = "list", .path = "/apis/policy/v1/poddisruptionbudgets?resourceVersion=0"};
  request.timeout = options_.patience;
  api_.request(std::move(request), [this, alive = is_alive_, call](const ApiAnswer& answer) {
    if (!*alive) return;
    if (answer.ok()) {
      budget_trouble_.works();
      const auto& items = list_field(answer.body, "items");
      call->budgets.emplace(std::vector<json>(items.begin(), items.end()));
    } else {
      budget_trouble_.failed(answer.error);
    }
    look_at_nodes(call);
  });
}

/// Some nodes at a time, until there is one: the pods of all of them would be too much for one answer.
void Preemptor::look_at_nodes(const Shared& call) {
  if (call->underway > 0 || call->is_answered) return;
  if (call->left.empty() || !call->planned.empty() || !is_deciding_) return finish(call);
  std::vector<NodeVictims> batch;
  while (batch.size() < options_.nodes_at_once && !call->left.empty()) {
    batch.push_back(std::move(call->left.front()));
    call->left.pop_front();
  }
  call->underway = batch.size();
  for (NodeVictims& offered : batch) {
    const std::string selector =
        fmt::format("spec.nodeName={},status.phase!=Succeeded,status.phase!=Failed", offered.node);
    list_pods(selector, options_.patience,
              [this, call, term = term_, offered = std::move(offered)](const ApiAnswer& answer) {
                --call->underway;
                if (answer.ok() && !call->is_answered && term == term_) plan(call, offered, answer);
                look_at_nodes(call);
              });
  }
}

void Preemptor::list_pods(const std::string& selector, std::chrono::milliseconds timeout,
                          api::Api::OnAnswer on_answer) {
  api::ApiRequest request{.verb = "list", .path = "/api/v1/pods?fieldSelector=" + api::query_escaped(selector)};
  request.timeout = timeout;
  api_.request(std::move(request), [alive = is_alive_, on_answer = std::move(on_answer)](const ApiAnswer& answer) {
    if (*alive) on_answer(answer);
  });
}

/// Reads the pods on the node, and adds to the book those that it does not know.
Preemptor::Pods Preemptor::pods_on(const std::string& node, const json& list) {
  Pods pods;
  for (const json& object : list_field(list, "items")) {
    if (has_ended(object)) continue;
    PodOnNode pod = read_pod_on_node(object);
    const RecentDemands::Read demand = read_demand_of(object, options_.defaults, shared_);
    const auto annotation = read_zone_annotation(text_field(object, "metadata", "annotations", "topolet.io/zone"));
    const bool is_told = annotation && annotation->node == node;
    MutexLock lock(shared_.mutex);
    ZoneBook& book = shared_.book;
    const auto view = book.view(node);
    const bool is_for_zones = demand->has_value() && view && has_own_cpus(**demand, view->zones.rules);
    if (is_for_zones && is_told && view && view->zones.has_acknowledgements)
      book.remember(**demand, *annotation, api_.now());
    if (const Promise* promise = book.promise_of(node, pod.uid)) {
      pod.is_promised = true;
      pod.frees = promise->taken;
    } else if (is_for_zones && view) {
      const bool is_counted = !view->zones.has_acknowledgements || view->zones.acknowledges(pod.uid);
      pod.is_uncounted = !is_counted && !pod.is_ending;
      if (is_told && is_counted) pod.frees = certain_parts(view->zones, **demand, *annotation);
    }
    // It may be anywhere on the node.
    if (view && view->zones.ignores_zones) pod.frees.clear();
    pods.push_back(std::move(pod));
  }
  return pods;
}

void Preemptor::plan(const Shared& call, const NodeVictims& offered, const ApiAnswer& answer) {
  const Demand& demand = **call->demand;
  Pods pods = pods_on(offered.node, answer.body);
  mark_named(offered.node, demand, pods);
  const auto room = [&] {
    MutexLock lock(shared_.mutex);
    return shared_.book.node_room(offered.node, demand);
  }();
  if (!room) {
    // Its zones are not known, and the pod does not insist on one.
    if (demand.policy != ZonePolicy::kSingle) call->planned.push_back(offered);
    return;
  }
  const Preemption preemption{
      demand, offered, pods, call->budgets ? &*call->budgets : nullptr, call->wants_only_amounts, call->requests};
  const Result<PreemptionPlan> plan = plan_preemption(*room, preemption);
  if (!plan) {
    log_.debug("nobody is evicted from {} for {}/{}: {}", offered.node, demand.name_space, demand.name,
               plan.error().message);
    return;
  }
  keep(demand, offered.node, *plan, false);
  call->planned.push_back(plan->victims);
}

/// Marks pods that are named as victims: a scheduler deletes them some time after, and may ask for its next pod before.
void Preemptor::mark_named(const std::string& node, const Demand& demand, Pods& pods) {
  MutexLock lock(shared_.mutex);
  for (const Kept& kept : shared_.book.kept().on(node)) {
    if (kept.uid == demand.uid) continue;
    for (PodOnNode& pod : pods) {
      const auto& named = kept.victims;
      pod.is_named = pod.is_named || std::find(named.begin(), named.end(), pod.uid) != named.end();
      pod.is_ending = pod.is_ending || pod.is_named;
    }
  }
}

void Preemptor::keep(const Demand& demand, const std::string& node, PreemptionPlan plan, bool is_nominated) {
  const auto now = api_.now();
  MutexLock lock(shared_.mutex);
  shared_.book.kept().keep({demand.uid, demand.name, demand.name_space, node, demand.priority, std::move(plan.keeps),
                            now, now + options_.keep + plan.grace, is_nominated, std::move(plan.victims.uids)});
}

void Preemptor::finish(const Shared& call) {
  if (std::exchange(call->is_answered, true)) return;
  const Demand& demand = **call->demand;
  if (call->planned.empty() || !is_deciding_) return call->on_planned({});
  for (const NodeVictims& node : call->planned)
    log_.info("for {}/{}, {} pods may be evicted from {}", demand.name_space, demand.name, node.uids.size(), node.node);
  call->on_planned(call->planned);
  api_.after(options_.first_look, [this, alive = is_alive_, uid = demand.uid] {
    if (!*alive) return;
    const std::vector<Kept> kept = [&] {
      MutexLock lock(shared_.mutex);
      return shared_.book.kept().of(uid);
    }();
    if (!kept.empty()) look_after(kept.front());
  });
}

void Preemptor::look_after_kept() {
  std::map<std::string, Kept> all;
  if (is_deciding_) {
    MutexLock lock(shared_.mutex);
    for (Kept& kept : shared_.book.kept().all()) all.emplace(kept.uid, std::move(kept));
  }
  for (const auto& [uid, kept] : all) look_after(kept);
  api_.after(options_.look_every, [this, alive = is_alive_] {
    if (*alive) look_after_kept();
  });
}

void Preemptor::look_after(const Kept& kept) {
  api::ApiRequest request{.verb = "get",
                          .path = fmt::format("/api/v1/namespaces/{}/pods/{}", kept.name_space, kept.name)};
  api_.request(std::move(request), [this, alive = is_alive_, term = term_, kept](const ApiAnswer& answer) {
    if (*alive && term == term_) take_pod(kept, answer);
  });
}

void Preemptor::take_pod(const Kept& kept, const ApiAnswer& answer) {
  const bool is_gone = answer.status == 404 || (answer.ok() && text_field(answer.body, "metadata", "uid") != kept.uid);
  const bool needs_none =
      is_gone || (answer.ok() && (!text_field(answer.body, "spec", "nodeName").empty() || has_ended(answer.body)));
  if (needs_none) {
    in_vain_.erase(kept.uid);
    MutexLock lock(shared_.mutex);
    return shared_.book.kept().drop(kept.uid);
  }
  const std::string node = text_field(answer.body, "status", "nominatedNodeName");
  std::vector<Kept> left;
  {
    MutexLock lock(shared_.mutex);
    if (!node.empty()) shared_.book.kept().nominate(kept.uid, node);
    left = shared_.book.kept().of(kept.uid);
  }
  if (left.empty()) return;
  const bool is_not_chosen = answer.ok() && node.empty() && api_.now() - left.front().since >= options_.until_nominated;
  if (is_not_chosen || api_.now() >= left.front().until) give_up(left.front());
}

void Preemptor::give_up(const Kept& kept) {
  if (kept.is_nominated) {
    if (in_vain_.size() >= kMostRemembered && !in_vain_.contains(kept.uid)) in_vain_.erase(in_vain_.begin());
    const int times = ++in_vain_[kept.uid];
    log_.warn("{}/{} was not bound to {} though pods were evicted for it ({} times){}", kept.name_space, kept.name,
              kept.node, times, times >= options_.most_in_vain ? "; nobody is evicted for it any more" : "");
  }
  MutexLock lock(shared_.mutex);
  shared_.book.kept().drop(kept.uid);
}

/// Restores the zones that the former leader has kept. Until they are known, or could not be read for long, no zone is
/// given to anybody.
void Preemptor::restore() {
  const bool is_synced = [this] {
    MutexLock lock(shared_.mutex);
    return shared_.is_synced;
  }();
  if (!is_synced) return restore_after(kLookSoon);
  list_pods("spec.nodeName=,status.nominatedNodeName!=", options_.patience,
            [this, term = term_](const ApiAnswer& answer) {
              if (term != term_) return;
              if (!answer.ok()) return restore_after(options_.retry);
              const auto left = std::make_shared<std::deque<RecentDemands::Read>>();
              for (const json& pod : list_field(answer.body, "items")) {
                RecentDemands::Read demand = read_demand_of(pod, options_.defaults, shared_);
                const bool waits = *demand && (*demand)->is_for_zones() && !(*demand)->nominated_node.empty();
                if (waits) left->push_back(std::move(demand));
              }
              // The first may take most.
              std::stable_sort(left->begin(), left->end(),
                               [](const auto& a, const auto& b) { return (*a)->priority > (*b)->priority; });
              restore_pods(left);
            });
}

void Preemptor::restore_after(std::chrono::milliseconds pause) {
  api_.after(pause, [this, alive = is_alive_, term = term_] {
    if (*alive && term == term_ && is_deciding_) restore();
  });
}

/// One after the other: what is kept for one is not there for the next.
void Preemptor::restore_pods(const std::shared_ptr<std::deque<RecentDemands::Read>>& left) {
  if (left->empty()) {
    shared_.is_kept_known = true;
    return;
  }
  const RecentDemands::Read demand = left->front();
  const std::string selector =
      fmt::format("spec.nodeName={},status.phase!=Succeeded,status.phase!=Failed", (*demand)->nominated_node);
  list_pods(selector, options_.patience, [this, left, demand, term = term_](const ApiAnswer& answer) {
    if (term != term_) return;
    if (!answer.ok()) {
      api_.after(options_.retry, [this, alive = is_alive_, left, term] {
        if (*alive && term == term_ && is_deciding_) restore_pods(left);
      });
      return;
    }
    left->pop_front();
    restore_pod(**demand, answer);
    restore_pods(left);
  });
}

void Preemptor::restore_pod(const Demand& wanted, const ApiAnswer& pods_on_its_node) {
  const Pods pods = pods_on(wanted.nominated_node, pods_on_its_node.body);
  const auto room = [&] {
    MutexLock lock(shared_.mutex);
    return shared_.book.node_room(wanted.nominated_node, wanted);
  }();
  if (!room) return;
  std::chrono::seconds grace{0};
  for (const PodOnNode& each : pods) grace = std::max(grace, each.is_ending ? each.grace : grace);
  if (auto taken = zones_after_ends(*room, wanted, pods)) {
    PreemptionPlan found;
    found.keeps = *std::move(taken);
    found.grace = grace;
    keep(wanted, wanted.nominated_node, std::move(found), true);
  }
}

}  // namespace topolet::extender
