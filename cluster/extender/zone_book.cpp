#include "cluster/extender/zone_book.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>
#include <utility>

#include "cluster/api/json_fields.hpp"
#include "cluster/extender/own_cpus.hpp"

namespace topolet::extender {
namespace {

using nlohmann::json;

constexpr int kAnnotationVersion = 1;

std::vector<std::uint32_t> indices_in(const json& list) {
  std::vector<std::uint32_t> indices;
  if (!list.is_array()) return indices;
  for (const json& index : list) {
    if (!index.is_number_unsigned() || index.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) continue;
    indices.push_back(index.get<std::uint32_t>());
    if (indices.size() == kMostZones) break;
  }
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

std::vector<std::pair<std::uint32_t, Amounts>> by_index(const NodeZones& node, const std::vector<Amounts>& taken) {
  std::vector<std::pair<std::uint32_t, Amounts>> amounts;
  for (std::size_t zone = 0; zone < taken.size(); ++zone) {
    if (!taken[zone].empty()) amounts.emplace_back(node.zones[zone].os_index, taken[zone]);
  }
  return amounts;
}

/// Returns the amounts that a container may take in one of the zones of its annotation.
Amounts part_in(const NodeZones* node, const Amounts& asks, std::uint32_t index, std::size_t zones) {
  if (node == nullptr || zones < 2) return asks;
  const std::vector<Amounts> parts = taken_by(*node, asks, {index});
  for (std::size_t zone = 0; zone < parts.size(); ++zone) {
    if (node->zones[zone].os_index == index) return parts[zone];
  }
  return asks;
}

/// Counts as choose_zones() does: containers that run at one time, with init containers in the place of later main
/// ones.
std::vector<std::pair<std::uint32_t, Amounts>> taken_by_pod(const NodeZones* node, const Demand& demand,
                                                            const ZoneAnnotation& annotation) {
  struct InZone {
    Amounts taken;
    Amounts reusable;
  };
  std::map<std::uint32_t, InZone> zones;
  const auto each = [&](bool are_init, auto count) {
    for (const ContainerDemand& container : demand.containers) {
      if ((container.kind == ContainerDemand::Kind::kInit) != are_init) continue;
      const auto told = std::find_if(annotation.containers.begin(), annotation.containers.end(),
                                     [&](const auto& entry) { return entry.first == container.name; });
      if (told == annotation.containers.end()) continue;
      const Amounts asks = asks_on(node, demand, container, annotation);
      for (const std::uint32_t index : told->second)
        count(container, zones[index], part_in(node, asks, index, told->second.size()));
    }
  };
  each(false, [](const ContainerDemand& container, InZone& zone, const Amounts& part) {
    zone.taken.add(part);
    if (container.kind == ContainerDemand::Kind::kMain) zone.reusable.add(part);
  });
  each(true, [](const ContainerDemand&, InZone& zone, const Amounts& part) {
    for (const Ask& ask : part.asks()) {
      const std::int64_t more = std::max<std::int64_t>(0, ask.amount - zone.reusable.get(ask.resource));
      zone.taken.add(ask.resource, more);
      zone.reusable.add(ask.resource, more);
    }
  });
  std::vector<std::pair<std::uint32_t, Amounts>> taken;
  for (auto& [index, zone] : zones) taken.emplace_back(index, std::move(zone.taken));
  return taken;
}

bool has_more(const std::vector<Amounts>& now, const std::vector<Amounts>& before) {
  if (now.size() > before.size()) return true;
  for (std::size_t zone = 0; zone < now.size(); ++zone) {
    for (const Ask& ask : now[zone].asks()) {
      if (ask.amount > before[zone].get(ask.resource)) return true;
    }
  }
  return false;
}

Error unknown_node() { return {Code::kNotFound, "publishes no NodeResourceTopology"}; }

}  // namespace

Amounts asks_on(const NodeZones* node, const Demand& demand, const ContainerDemand& container,
                const ZoneAnnotation& annotation) {
  if (node == nullptr || !node->publishes(kIsolatedCpu)) return container.asks;
  const auto source = cpu_source(demand, container, node->rules);
  if (!source || source == CpuSource::kPool) return container.asks;
  const auto& of_pool = annotation.of_pool;
  const bool is_of_pool = source == CpuSource::kPreferIsolated &&
                          std::find(of_pool.begin(), of_pool.end(), container.name) != of_pool.end();
  return is_of_pool ? container.asks : as_isolated(container.asks);
}

std::optional<ZoneAnnotation> read_zone_annotation(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (object.is_discarded() || api::field(object, "v") != kAnnotationVersion) return std::nullopt;
  ZoneAnnotation annotation;
  annotation.text = text;
  annotation.node = api::text_field(object, "node");
  for (const auto& [container, zones] : api::map_field(object, "containers"))
    annotation.containers.emplace_back(container, indices_in(zones));
  for (const json& name : api::list_field(object, "pool")) {
    if (name.is_string()) annotation.of_pool.push_back(name.get<std::string>());
  }
  if (annotation.node.empty() || annotation.containers.empty()) return std::nullopt;
  return annotation;
}

std::string zone_annotation_text(const NodeZones& node, const Choice& choice) {
  std::set<std::uint32_t> all;
  json containers = json::object();
  for (const ContainerZones& container : choice.containers) {
    json& zones = containers[container.container] = json::array();
    for (const std::size_t zone : container.zones) {
      zones.push_back(node.zones[zone].os_index);
      all.insert(node.zones[zone].os_index);
    }
  }
  json annotation = {{"v", kAnnotationVersion},  {"node", node.name},        {"zones", all},
                     {"containers", containers}, {"by", "topolet-extender"}, {"gen", node.generation}};
  if (!choice.of_pool.empty()) annotation["pool"] = choice.of_pool;
  return annotation.dump(-1, ' ', false, json::error_handler_t::replace);
}

const ZoneBook::Node* ZoneBook::find(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.get();
}

void ZoneBook::set_node(NodeZones zones) {
  std::unique_ptr<Node>& node = nodes_[zones.name];
  if (!node) node = std::make_unique<Node>();
  const bool is_older = node->is_published && zones.version != 0 && zones.version < node->zones.version;
  if (is_older) return;
  const bool is_new = !std::exchange(node->is_published, true);
  const bool enforces_other = node->zones.policy != zones.policy || node->zones.is_pod_scope != zones.is_pod_scope;
  if (is_new) grown_[zones.name] = Growth::kNew;
  if (enforces_other) grown_.try_emplace(zones.name, Growth::kMore);
  node->zones = std::move(zones);
  note_rules(node->zones.rules);
  for (const std::uint64_t number : std::vector(node->promises)) {
    if (node->zones.acknowledges(promises_.at(number).uid)) remove(number);
  }
  recount(*node);
}

void ZoneBook::note_rules(const NodeRules& rules) {
  const bool is_known = std::find(rules_.begin(), rules_.end(), rules) != rules_.end();
  if (!is_known && rules_.size() < kMostRules) rules_.push_back(rules);
}

void ZoneBook::drop_if_empty(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end() && !found->second->is_published && found->second->promises.empty()) nodes_.erase(found);
}

void ZoneBook::remove_node(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  Node& node = *found->second;
  node.is_published = false;
  node.is_silent = false;
  kept_.drop_node(name);
  node.zones = {};
  node.zones.name = name;
  recount(node);
  drop_if_empty(name);
}

void ZoneBook::set_silent(const std::string& name, bool is_silent) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  if (std::exchange(found->second->is_silent, is_silent) && !is_silent) grown_.try_emplace(name, Growth::kMore);
}

void ZoneBook::keep_only(const std::vector<std::string>& names) {
  const std::unordered_set<std::string> kept(names.begin(), names.end());
  for (const std::string& name : node_names()) {
    if (!kept.contains(name)) remove_node(name);
  }
}

std::map<std::string, Growth> ZoneBook::take_grown() {
  std::map<std::string, Growth> grown = std::exchange(grown_, {});
  for (const std::string& name : kept_.take_freed()) grown.try_emplace(name, Growth::kMore);
  return grown;
}

void ZoneBook::recount(Node& node) {
  const std::vector<Amounts> before = std::exchange(node.free, {});
  const bool was_stale = node.is_stale;
  for (const Zone& zone : node.zones.zones) node.free.push_back(zone.available);
  node.has_promises.assign(node.free.size(), false);
  node.is_stale = node.never_acknowledges && !node.zones.has_acknowledgements;
  for (const std::uint64_t number : node.promises) {
    const Promise& promise = promises_.at(number);
    node.is_stale = node.is_stale || promise.is_overdue;
    for (const auto& [index, amounts] : promise.taken) {
      for (std::size_t zone = 0; zone < node.free.size(); ++zone) {
        if (node.zones.zones[zone].os_index != index) continue;
        node.has_promises[zone] = true;
        for (const Ask& ask : amounts.asks()) node.free[zone].add(ask.resource, -ask.amount);
      }
    }
  }
  if (has_more(node.free, before) || (was_stale && !node.is_stale)) grown_.try_emplace(node.zones.name, Growth::kMore);
  node.has_cpus = node.zones.publishes(kCpu);
  node.free_cpu.clear();
  for (const Amounts& free : node.free) node.free_cpu.push_back(free.get(kCpu));
}

template <class Look>
auto ZoneBook::look_for(const Node& node, const Demand& demand, Look look) const {
  if (!kept_.any_for_others(node.zones.name, demand)) return look(free_zones(node));
  const NodeRoom room = *node_room(node.zones.name, demand);
  std::vector<std::int64_t> free_cpu;
  for (const Amounts& free : room.free) free_cpu.push_back(free.get(kCpu));
  return look(
      FreeZones{node.zones, room.free, free_cpu, room.has_promises, room.has_cpus, room.is_stale, room.is_silent});
}

std::optional<ZoneBook::NodeRoom> ZoneBook::node_room(std::string_view name, const Demand& demand) const {
  const Node* node = find(name);
  if (node == nullptr || !node->is_published) return std::nullopt;
  NodeRoom room{node->zones, node->free, node->has_promises, node->has_cpus, node->is_stale, node->is_silent};
  for (const Kept& kept : kept_.on(name)) {
    if (!KeptZones::comes_before(kept, demand)) continue;
    for (const auto& [index, amounts] : kept.taken) {
      for (std::size_t zone = 0; zone < room.free.size(); ++zone) {
        if (room.zones.zones[zone].os_index != index) continue;
        room.has_promises[zone] = true;
        for (const Ask& ask : amounts.asks()) room.free[zone].add(ask.resource, -ask.amount);
      }
    }
  }
  return room;
}

const Promise* ZoneBook::promise_of(std::string_view name, const std::string& uid) const {
  const Node* node = find(name);
  if (node == nullptr) return nullptr;
  for (const std::uint64_t number : node->promises) {
    if (promises_.at(number).uid == uid) return &promises_.at(number);
  }
  return nullptr;
}

Result<Fit> ZoneBook::fit(std::string_view name, const Demand& demand) const {
  const Node* node = find(name);
  if (node == nullptr || !node->is_published) {
    if (!has_own_cpus(demand, {})) return Fit{};
    return unknown_node();
  }
  return look_for(*node, demand, [&](const FreeZones& zones) { return fit_zones(zones, demand); });
}

Status ZoneBook::check(std::string_view name, const Demand& demand) const {
  const Node* node = find(name);
  if (node == nullptr || !node->is_published) {
    if (!has_own_cpus(demand, {})) return Status();
    return unknown_node();
  }
  return look_for(*node, demand, [&](const FreeZones& zones) { return check_zones(zones, demand); });
}

Result<Choice> ZoneBook::choose(std::string_view name, const Demand& demand) const {
  const Node* node = find(name);
  if (node == nullptr || !node->is_published) {
    if (!has_own_cpus(demand, {})) return Choice{};
    return unknown_node();
  }
  return look_for(*node, demand, [&](const FreeZones& zones) { return choose_zones(zones, demand); });
}

std::uint64_t ZoneBook::add(Promise promise) {
  std::unique_ptr<Node>& node = nodes_[promise.node];
  if (!node) {
    node = std::make_unique<Node>();
    node->zones.name = promise.node;
  }
  promise.term = term_;
  promise.number = last_promise_ + 1;
  node->promises.push_back(++last_promise_);
  promises_[last_promise_] = std::move(promise);
  recount(*node);
  return last_promise_;
}

std::uint64_t ZoneBook::find_promise(const std::string& uid, const std::string& name) const {
  const Node* node = find(name);
  if (node == nullptr) return 0;
  const auto found = std::find_if(node->promises.begin(), node->promises.end(), [&](std::uint64_t number) {
    const Promise& promise = promises_.at(number);
    return promise.uid == uid && promise.term == term_;
  });
  return found == node->promises.end() ? 0 : *found;
}

void ZoneBook::remove(std::uint64_t number) {
  const auto found = promises_.find(number);
  if (found == promises_.end()) return;
  const std::string name = found->second.node;
  promises_.erase(found);
  Node& node = *nodes_.find(name)->second;
  std::erase(node.promises, number);
  recount(node);
}

Result<ZoneBook::Reserved> ZoneBook::reserve(const std::string& name, const Demand& demand, Time now) {
  if (const std::uint64_t number = find_promise(demand.uid, name); number != 0) {
    Promise& before = promises_.at(number);
    if (before.state == Promise::State::kBinding)
      return Error{Code::kAborted, "the pod is being bound to this node already"};
    before.state = Promise::State::kBinding;
    before.since = before.looked = now;
    return Reserved{number, before.annotation, true};
  }
  const Result<Choice> choice = choose(name, demand);
  if (!choice) return choice.error();
  if (choice->containers.empty()) return Reserved{};
  const NodeZones& zones = find(name)->zones;
  Promise promise{0,  demand.uid, demand.name, demand.name_space, name, Promise::State::kBinding, now, now, false, {},
                  {}, 0};
  promise.taken = by_index(zones, choice->taken);
  promise.annotation = zone_annotation_text(zones, *choice);
  std::string annotation = promise.annotation;
  return Reserved{add(std::move(promise)), std::move(annotation), false};
}

void ZoneBook::confirm(std::uint64_t number, Time now) {
  const auto found = promises_.find(number);
  if (found == promises_.end()) return;
  found->second.state = Promise::State::kBound;
  found->second.since = found->second.looked = now;
  const std::string uid = found->second.uid;
  release_others(uid, number);
  kept_.drop(uid);
  const Node* node = find(found->second.node);
  if (node->is_published && node->zones.acknowledges(uid)) release(number);
}

void ZoneBook::release_others(const std::string& uid, std::uint64_t but) {
  std::vector<std::uint64_t> others;
  for (const auto& [number, promise] : promises_) {
    if (number != but && promise.uid == uid) others.push_back(number);
  }
  for (const std::uint64_t number : others) release(number);
}

void ZoneBook::doubt(std::uint64_t number, Time now) {
  const auto found = promises_.find(number);
  if (found == promises_.end()) return;
  found->second.state = Promise::State::kInDoubt;
  found->second.since = found->second.looked = now;
}

void ZoneBook::release(std::uint64_t number) {
  const auto found = promises_.find(number);
  if (found == promises_.end()) return;
  const std::string node = found->second.node;
  remove(number);
  drop_if_empty(node);
}

void ZoneBook::remember(const Demand& demand, const ZoneAnnotation& annotation, Time now) {
  const Node* node = find(annotation.node);
  const bool is_published = node != nullptr && node->is_published;
  if (is_published && node->zones.acknowledges(demand.uid)) return;
  if (find_promise(demand.uid, annotation.node) != 0) return;
  release_others(demand.uid, 0);
  Promise promise{0,
                  demand.uid,
                  demand.name,
                  demand.name_space,
                  annotation.node,
                  Promise::State::kBound,
                  now,
                  now,
                  false,
                  {},
                  annotation.text,
                  0};
  promise.taken = taken_by_pod(is_published ? &node->zones : nullptr, demand, annotation);
  add(std::move(promise));
}

void ZoneBook::begin_term() {
  ++term_;
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, promise] : promises_) {
    if (promise.state == Promise::State::kBound) numbers.push_back(number);
  }
  for (const std::uint64_t number : numbers) release(number);
  kept_ = {};
}

std::vector<Promise> ZoneBook::due(Time now) const {
  std::vector<Promise> due;
  for (const auto& [number, promise] : promises_) {
    if (promise.state != Promise::State::kBinding && now - promise.looked >= kLookEvery) due.push_back(promise);
  }
  return due;
}

Promise* ZoneBook::find_due(const Promise& due) {
  const auto found = promises_.find(due.number);
  if (found == promises_.end() || found->second.state != due.state || found->second.looked != due.looked)
    return nullptr;
  return &found->second;
}

void ZoneBook::keep_waiting(const Promise& due, Time now) {
  Promise* promise = find_due(due);
  if (promise == nullptr) return;
  promise->state = Promise::State::kBound;
  promise->looked = now;
  if (now - promise->since < kPatience) return;
  promise->is_overdue = true;
  Node& node = *nodes_.find(due.node)->second;
  if (!node.is_published || node.zones.has_acknowledgements) return recount(node);
  node.never_acknowledges = true;
  remove(due.number);
}

void ZoneBook::drop(const Promise& due) {
  if (find_due(due) != nullptr) release(due.number);
}

std::optional<ZoneBook::NodeView> ZoneBook::view(std::string_view name) const {
  const Node* node = find(name);
  if (node == nullptr) return std::nullopt;
  return NodeView{node->zones, node->free, node->is_stale || node->is_silent};
}

std::vector<std::string> ZoneBook::node_names() const {
  std::vector<std::string> names;
  names.reserve(nodes_.size());
  for (const auto& [name, node] : nodes_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Promise> ZoneBook::promises() const {
  std::vector<Promise> all;
  all.reserve(promises_.size());
  for (const auto& [number, promise] : promises_) all.push_back(promise);
  return all;
}

std::size_t ZoneBook::stale_nodes() const {
  return static_cast<std::size_t>(std::count_if(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    return entry.second->is_stale || entry.second->is_silent;
  }));
}

}  // namespace topolet::extender
