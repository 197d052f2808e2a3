#include "cluster/extender/victims.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "cluster/api/json_fields.hpp"

namespace topolet::extender {
namespace {

using api::field;
using api::list_field;
using api::map_field;
using api::text_field;
using nlohmann::json;

using Victims = std::vector<const PodOnNode*>;
using Taken = std::vector<std::pair<std::uint32_t, Amounts>>;

Error evict_nobody(const char* why) { return {Code::kFailedPrecondition, why}; }

std::int64_t number_in(const json& value, std::int64_t otherwise) {
  return value.is_number_integer() ? value.get<std::int64_t>() : otherwise;
}

/// Compares as kube-scheduler does: by priority, and then by time since the start.
bool is_more_important(const PodOnNode* a, const PodOnNode* b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  if (a->started.empty() != b->started.empty()) return !a->started.empty();
  return std::tie(a->started, a->uid) < std::tie(b->started, b->uid);
}

bool contains(const Victims& victims, const PodOnNode* pod) {
  return std::find(victims.begin(), victims.end(), pod) != victims.end();
}

/// Returns true if `a` has at least as much of each resource as `b`.
bool is_as_much(const api::Amounts& a, const api::Amounts& b) {
  const auto get = [](const auto& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? 0 : found->second;
  };
  if (a.cpu_milli < b.cpu_milli || a.memory_bytes < b.memory_bytes) return false;
  for (const auto& [size, bytes] : b.huge_page_bytes) {
    if (get(a.huge_page_bytes, size) < bytes) return false;
  }
  return std::all_of(b.devices.begin(), b.devices.end(),
                     [&](const auto& device) { return get(a.devices, device.first) >= device.second; });
}

class VictimPlanner {
 public:
  VictimPlanner(const ZoneBook::NodeRoom& room, const Demand& demand, const std::vector<PodOnNode>& pods)
      : room_(room), demand_(demand), pods_(pods), now_(room.free), later_(room.free) {
    subtract_what_cannot_be();
    for (const PodOnNode& pod : pods_) {
      if (pod.is_ending) free(pod, later_);
    }
  }

  Result<PreemptionPlan> plan(const Preemption& preemption) {
    preemption_ = &preemption;
    if (is_changing()) return evict_nobody("what the node publishes is older than its pods");
    if (!find_offered()) return evict_nobody("an offered victim is gone");
    if (const auto placed = place(now_)) return finish(offered_, *placed);
    if (place(later_)) return evict_nobody("pods that end already make room");
    if (place_without(offered_)) {
      const Victims victims = are_some_named_ ? pruned(offered_) : offered_;
      return finish(victims, *place_without(victims));
    }
    if (preemption.budgets == nullptr) return evict_nobody("the offered victims free no zone");
    Victims best;
    for (std::size_t zone = 0; zone <= room_.free.size(); ++zone) {
      Victims victims = find_victims(zone);
      if (!victims.empty() && (best.empty() || key_of(victims) < key_of(best))) best = std::move(victims);
    }
    if (best.empty()) return evict_nobody("no victims free a zone");
    return finish(best, *place_without(best));
  }

  std::optional<Taken> taken_later() const {
    const auto placed = place(later_);
    return placed ? std::optional(taken_by_choice(*placed)) : std::nullopt;
  }

 private:
  void free(const PodOnNode& pod, std::vector<Amounts>& zones) const {
    for (const auto& [index, amounts] : pod.frees) {
      for (std::size_t i = 0; i < zones.size(); ++i) {
        if (room_.zones.zones[i].os_index == index) zones[i].add(amounts);
      }
    }
  }

  /// Annotations tell where pods were when they were bound. Where they tell of more than is taken of a zone, some pods
  /// are elsewhere by now: that much may not become free.
  void subtract_what_cannot_be() {
    std::vector<Amounts> told(room_.free.size());
    for (const PodOnNode& pod : pods_) {
      if (!pod.is_promised) free(pod, told);
    }
    for (std::size_t i = 0; i < told.size(); ++i) {
      const Zone& zone = room_.zones.zones[i];
      for (const Ask& ask : told[i].asks()) {
        const std::int64_t taken = zone.allocatable.get(ask.resource) - zone.available.get(ask.resource);
        const std::int64_t excess = std::max<std::int64_t>(0, ask.amount - std::max<std::int64_t>(0, taken));
        later_[i].add(ask.resource, -excess);
      }
    }
  }

  /// The object counts pods that are gone, or does not count some that have come: what is free will be known soon.
  bool is_changing() const {
    for (const PodOnNode& pod : pods_) {
      if (pod.is_uncounted) return true;
    }
    return std::any_of(room_.zones.acknowledged.begin(), room_.zones.acknowledged.end(), [&](const std::string& begin) {
      return std::none_of(pods_.begin(), pods_.end(), [&](const PodOnNode& pod) { return pod.uid.starts_with(begin); });
    });
  }

  bool find_offered() {
    for (const std::string& uid : preemption_->offered.uids) {
      const auto found = std::find_if(pods_.begin(), pods_.end(), [&](const PodOnNode& pod) { return pod.uid == uid; });
      if (found == pods_.end()) return false;
      are_some_named_ = are_some_named_ || found->is_named;
      offered_amounts_.add(found->requests);
      if (!found->is_named) offered_.push_back(&*found);
    }
    return !offered_.empty();
  }

  std::optional<Choice> place(std::vector<Amounts> zones) const {
    std::vector<std::int64_t> cpu;
    for (std::size_t i = 0; i < zones.size(); ++i) {
      const Amounts free = zones[i];
      for (const Ask& ask : free.asks())
        zones[i].set(ask.resource, std::min(ask.amount, room_.zones.zones[i].allocatable.get(ask.resource)));
      cpu.push_back(zones[i].get(kCpu));
    }
    Result<Choice> choice = choose_zones(
        {room_.zones, zones, cpu, room_.has_promises, room_.has_cpus, room_.is_stale, room_.is_silent}, demand_);
    return choice ? std::optional(*std::move(choice)) : std::nullopt;
  }
  std::optional<Choice> place_without(const Victims& victims) const {
    std::vector<Amounts> zones = later_;
    for (const PodOnNode* victim : victims) {
      if (!victim->is_ending) free(*victim, zones);
    }
    return place(std::move(zones));
  }

  bool may_be_victim(const PodOnNode& pod) const {
    return pod.priority < demand_.priority && !pod.is_ending && !pod.is_mirror;
  }
  /// Returns the CPUs that the pod's end frees in a zone; in all of them if there is no such zone.
  std::int64_t freed_in(const PodOnNode& pod, std::size_t zone) const {
    std::int64_t sum = 0;
    for (const auto& [index, amounts] : pod.frees) {
      if (zone >= room_.free.size() || room_.zones.zones[zone].os_index == index)
        sum += amounts.get(kCpu) + amounts.get(kIsolatedCpu);
    }
    return sum;
  }

  /// Returns the victims whose CPUs in a zone are enough, in all zones if there is no such zone; empty if they are not.
  Victims find_victims(std::size_t zone) const {
    Victims all;
    for (const PodOnNode& pod : pods_) {
      if (may_be_victim(pod) && freed_in(pod, zone) > 0) all.push_back(&pod);
    }
    std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return is_more_important(b, a); });
    Victims victims = fewest_of(without_violations(all), zone);
    if (victims.empty()) victims = fewest_of(all, zone);
    return victims.empty() ? victims : pruned(with_enough_for_node(std::move(victims)));
  }

  Victims without_violations(const Victims& all) const {
    Victims some;
    for (const PodOnNode* pod : all) {
      some.push_back(pod);
      if (preemption_->budgets->violations_of(some) > 0) some.pop_back();
    }
    return some;
  }

  /// `all`: the least important first. Those of the lowest priorities that are enough, and of them as few as can be.
  Victims fewest_of(const Victims& all, std::size_t zone) const {
    Victims pool;
    for (std::size_t i = 0; i < all.size(); ++i) {
      pool.push_back(all[i]);
      const bool has_more_like_it = i + 1 < all.size() && all[i + 1]->priority == all[i]->priority;
      if (has_more_like_it || !place_without(pool)) continue;
      std::stable_sort(pool.begin(), pool.end(),
                       [&](const PodOnNode* a, const PodOnNode* b) { return freed_in(*a, zone) > freed_in(*b, zone); });
      Victims victims;
      for (const PodOnNode* pod : pool) {
        victims.push_back(pod);
        if (place_without(victims)) return victims;
      }
    }
    return {};
  }

  /// Returns the least amounts that victims must free on the whole node: those of the scheduler's choice, without the
  /// excess that pods which go anyway may explain.
  api::Amounts needed_on_node() const {
    api::Amounts needed = offered_amounts_;
    api::Amounts going;
    for (const PodOnNode& pod : pods_) {
      if (pod.is_named) going.add(pod.requests);
    }
    const api::Amounts& own = preemption_->requests;
    needed.cpu_milli -= std::clamp<std::int64_t>(needed.cpu_milli - own.cpu_milli, 0, going.cpu_milli);
    needed.memory_bytes -= std::clamp<std::int64_t>(needed.memory_bytes - own.memory_bytes, 0, going.memory_bytes);
    return needed;
  }
  bool is_enough_for_node(const Victims& victims) const {
    api::Amounts freed;
    for (const PodOnNode* pod : victims) freed.add(pod->requests);
    for (const PodOnNode* pod : offered_) {
      const bool must_go = !preemption_->wants_only_amounts || pod->keeps_others_away;
      if (must_go && !contains(victims, pod)) return false;
    }
    return is_as_much(freed, needed_on_node());
  }
  Victims with_enough_for_node(Victims victims) const {
    Victims more = offered_;
    std::sort(more.begin(), more.end(), [](const auto* a, const auto* b) { return is_more_important(b, a); });
    for (const PodOnNode* pod : more) {
      if (is_enough_for_node(victims)) break;
      if (!contains(victims, pod)) victims.push_back(pod);
    }
    return victims;
  }
  /// Removes victims that are not needed, the most important ones first.
  Victims pruned(Victims victims) const {
    Victims order = victims;
    std::sort(order.begin(), order.end(), is_more_important);
    for (const PodOnNode* pod : order) {
      Victims fewer = victims;
      std::erase(fewer, pod);
      if (!fewer.empty() && is_enough_for_node(fewer) && place_without(fewer)) victims = std::move(fewer);
    }
    return victims;
  }

  /// Returns the key by which kube-scheduler compares nodes; less is better.
  std::tuple<std::int64_t, std::int64_t, std::size_t, std::int64_t> key_of(const Victims& victims) const {
    std::int64_t highest = std::numeric_limits<std::int64_t>::min();
    std::int64_t sum = 0;
    for (const PodOnNode* pod : victims) {
      highest = std::max(highest, pod->priority);
      sum += pod->priority;
    }
    return {preemption_->budgets->violations_of(victims), highest, victims.size(), sum};
  }

  Taken taken_by_choice(const Choice& choice) const {
    Taken taken;
    for (std::size_t i = 0; i < choice.taken.size(); ++i) {
      if (!choice.taken[i].empty()) taken.emplace_back(room_.zones.zones[i].os_index, choice.taken[i]);
    }
    return taken;
  }

  PreemptionPlan finish(Victims victims, const Choice& choice) const {
    PreemptionPlan plan;
    const bool is_offered = victims == offered_;
    std::sort(victims.begin(), victims.end(), is_more_important);
    plan.victims.node = preemption_->offered.node;
    plan.victims.budget_violations =
        is_offered ? preemption_->offered.budget_violations : preemption_->budgets->violations_of(victims);
    for (const PodOnNode* pod : victims) {
      plan.victims.uids.push_back(pod->uid);
      plan.grace = std::max(plan.grace, pod->grace);
    }
    plan.keeps = taken_by_choice(choice);
    return plan;
  }

  const ZoneBook::NodeRoom& room_;
  const Demand& demand_;
  const std::vector<PodOnNode>& pods_;
  const Preemption* preemption_ = nullptr;
  std::vector<Amounts> now_;
  std::vector<Amounts> later_;    ///< when all have gone that are ending, less what may never become free
  Victims offered_;               ///< but for those that go anyway
  api::Amounts offered_amounts_;  ///< of all that were
  bool are_some_named_ = false;
};

}  // namespace

PodOnNode read_pod_on_node(const json& object) {
  const api::Pod read = api::read_pod(object);
  PodOnNode pod;
  pod.uid = read.uid;
  pod.name = read.name;
  pod.name_space = read.name_space;
  for (const auto& [key, value] : map_field(object, "metadata", "labels")) {
    if (value.is_string()) pod.labels[key] = value.get<std::string>();
  }
  pod.priority = number_in(field(object, "spec", "priority"), 0);
  pod.started = text_field(object, "status", "startTime");
  pod.is_ending = !text_field(object, "metadata", "deletionTimestamp").empty();
  pod.is_mirror = read.annotations.contains("kubernetes.io/config.mirror");
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  pod.keeps_others_away = !list_field(object, "spec", "affinity", "podAntiAffinity", kRequired).empty();
  pod.grace = std::chrono::seconds(
      std::clamp<std::int64_t>(number_in(field(object, "spec", "terminationGracePeriodSeconds"), 30), 0, 3600));
  pod.requests = read.effective_requests();
  return pod;
}

std::vector<std::pair<std::uint32_t, Amounts>> certain_parts(const NodeZones& node, const Demand& demand,
                                                             const ZoneAnnotation& annotation) {
  std::map<std::uint32_t, Amounts> parts;
  for (const ContainerDemand& container : demand.containers) {
    if (container.kind == ContainerDemand::Kind::kInit) continue;
    for (const auto& [name, zones] : annotation.containers) {
      if (name == container.name && zones.size() == 1)
        parts[zones.front()].add(asks_on(&node, demand, container, annotation));
    }
  }
  return {parts.begin(), parts.end()};
}

bool wants_only_amounts(const json& pod) {
  static const std::set<std::string> kPlainVolumes = {"name",      "configMap", "secret",
                                                      "projected", "emptyDir",  "downwardAPI"};
  const json& spec = field(pod, "spec");
  const json& affinity = field(spec, "affinity");
  if (!field(affinity, "podAffinity").is_null() || !field(affinity, "podAntiAffinity").is_null()) return false;
  if (!list_field(spec, "topologySpreadConstraints").empty() || !list_field(spec, "resourceClaims").empty())
    return false;
  for (const json& volume : list_field(spec, "volumes")) {
    for (const auto& [kind, unused] : volume.items()) {
      if (!kPlainVolumes.contains(kind)) return false;
    }
  }
  for (const char* list : {"containers", "initContainers"}) {
    for (const json& container : list_field(spec, list)) {
      if (!field(container, "resources", "requests", "ephemeral-storage").is_null()) return false;
      for (const json& port : list_field(container, "ports")) {
        if (number_in(field(port, "hostPort"), 0) != 0) return false;
      }
    }
  }
  return true;
}

Result<PreemptionPlan> plan_preemption(const ZoneBook::NodeRoom& room, const Preemption& preemption) {
  return VictimPlanner(room, preemption.demand, preemption.pods).plan(preemption);
}

std::optional<std::vector<std::pair<std::uint32_t, Amounts>>> zones_after_ends(const ZoneBook::NodeRoom& room,
                                                                               const Demand& demand,
                                                                               const std::vector<PodOnNode>& pods) {
  return VictimPlanner(room, demand, pods).taken_later();
}

}  // namespace topolet::extender
