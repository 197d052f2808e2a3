#include "core/engine/state/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/engine/state/device_rows.hpp"
#include "core/engine/state/stored_fields.hpp"
#include "core/engine/state/verdicts_json.hpp"

namespace topolet::engine {
namespace {

using Json = nlohmann::json;

constexpr std::array kModes{placement::Mode::kExclusive, placement::Mode::kShared, placement::Mode::kReserved,
                            placement::Mode::kForeign};
constexpr std::array kSqueezes{Squeeze::kNone, Squeeze::kPlaced, Squeeze::kLeftToKernel};
constexpr std::array kQuotaStates{QuotaState::kAsAsked, QuotaState::kDropped, QuotaState::kGivenBack};
constexpr std::array kQos{placement::Qos::kGuaranteed, placement::Qos::kBurstable, placement::Qos::kBestEffort,
                          placement::Qos::kUnknown};
constexpr std::array kCertainties{placement::Certainty::kTold, placement::Certainty::kEstimated,
                                  placement::Certainty::kUnknown, placement::Certainty::kOfPod};

template <class Enum, class All>
void read_name(const std::string& name, const All& all, Enum& value) {
  const auto found = std::find_if(all.begin(), all.end(), [&](Enum known) { return to_string(known) == name; });
  if (found == all.end()) throw std::runtime_error("'" + name + "' is not known");
  value = *found;
}

// Encodes values that are more than a number, a text or a set as JSON. Empty values are not written.

Json json_of(const placement::Demand& demand) {
  return {{"cpu_request_milli", demand.cpu_request_milli},
          {"cpu_request_certainty", to_string(demand.cpu_request_certainty)},
          {"cpu_limit_milli", demand.cpu_limit_milli},
          {"cpu_period_us", demand.cpu_period_us},
          {"memory_request_bytes", demand.memory_request_bytes},
          {"memory_request_estimated", demand.memory_request_estimated},
          {"memory_limit_bytes", demand.memory_limit_bytes},
          {"hugepages", demand.hugepage_limit_bytes},
          {"oom_score_adj", demand.oom_score_adj}};
}

void read(const Json& json, placement::Demand& demand) {
  json.at("cpu_request_milli").get_to(demand.cpu_request_milli);
  // Older versions did not write these.
  demand.cpu_period_us = json.value("cpu_period_us", std::int64_t{0});
  const auto certainty = json.find("cpu_request_certainty");
  if (certainty != json.end()) read_name(certainty->get<std::string>(), kCertainties, demand.cpu_request_certainty);
  json.at("cpu_limit_milli").get_to(demand.cpu_limit_milli);
  json.at("memory_request_bytes").get_to(demand.memory_request_bytes);
  json.at("memory_request_estimated").get_to(demand.memory_request_estimated);
  json.at("memory_limit_bytes").get_to(demand.memory_limit_bytes);
  json.at("hugepages").get_to(demand.hugepage_limit_bytes);
  demand.oom_score_adj = json.value("oom_score_adj", std::int64_t{0});
}

Json json_of(const placement::AddedFields& added) { return {{"env", added.env}, {"annotations", added.annotations}}; }

void read(const Json& json, placement::AddedFields& added) {
  json.at("env").get_to(added.env);
  json.at("annotations").get_to(added.annotations);
}

template <class Set>
void read_set(const Json& json, const char* name, Set& set) {
  auto parsed = Set::parse(json.at(name).get<std::string>());
  if (!parsed) throw std::runtime_error(parsed.error().message);
  set = *std::move(parsed);
}

Json json_of(const Preferred& preferred) {
  return {{"mode", to_string(preferred.placement.mode)},
          {"cpus", preferred.placement.cpus.to_string()},
          {"withheld", preferred.placement.withheld.to_string()},
          {"mems", preferred.placement.mems.to_string()},
          {"within", preferred.within.to_string()},
          {"nodes", preferred.nodes.to_string()},
          {"whole", preferred.waits_for_all}};
}

void read(const Json& json, Preferred& preferred) {
  read_name(json.at("mode").get<std::string>(), kModes, preferred.placement.mode);
  read_set(json, "cpus", preferred.placement.cpus);
  read_set(json, "withheld", preferred.placement.withheld);
  read_set(json, "mems", preferred.placement.mems);
  read_set(json, "within", preferred.within);
  read_set(json, "nodes", preferred.nodes);
  json.at("whole").get_to(preferred.waits_for_all);
}

Json json_of(const Overruled& overruled) {
  return {{"since_ms", overruled.since.count()},
          {"ours_since_ms", overruled.ours_since.count()},
          {"cpus", overruled.cpus.to_string()}};
}

void read(const Json& json, Overruled& overruled) {
  overruled.since = std::chrono::milliseconds(json.at("since_ms").get<std::int64_t>());
  overruled.ours_since = std::chrono::milliseconds(json.at("ours_since_ms").get<std::int64_t>());
  if (json.contains("cpus")) read_set(json, "cpus", overruled.cpus);
}

Json json_of(const Hand& hand) { return {{"repaired_ms", hand.repaired_at.count()}, {"repairs", hand.repairs}}; }

void read(const Json& json, Hand& hand) {
  hand.repaired_at = std::chrono::milliseconds(json.at("repaired_ms").get<std::int64_t>());
  json.at("repairs").get_to(hand.repairs);
}

Json json_of(const Stuck& stuck) {
  return {{"cpus", stuck.cpus.to_string()},
          {"why", stuck.why},
          {"since_ms", stuck.since.count()},
          {"next_trial_ms", stuck.next_trial.count()},
          {"trials", stuck.trials}};
}

void read(const Json& json, Stuck& stuck) {
  read_set(json, "cpus", stuck.cpus);
  json.at("why").get_to(stuck.why);
  stuck.since = std::chrono::milliseconds(json.at("since_ms").get<std::int64_t>());
  stuck.next_trial = std::chrono::milliseconds(json.at("next_trial_ms").get<std::int64_t>());
  json.at("trials").get_to(stuck.trials);
}

Json json_of(const operations::CfsQuota& quota) {
  return {{"quota_us", quota.quota_us}, {"period_us", quota.period_us}};
}

void read(const Json& json, operations::CfsQuota& quota) {
  json.at("quota_us").get_to(quota.quota_us);
  json.at("period_us").get_to(quota.period_us);
}

Json json_of(const FormerCpus& former) {
  return {{"cpus", former.cpus.to_string()}, {"withheld", former.withheld.to_string()}};
}

void read(const Json& json, FormerCpus& former) {
  read_set(json, "cpus", former.cpus);
  read_set(json, "withheld", former.withheld);
}

Json json_of(const Denial& denial) {
  return {{"attempt", denial.attempt}, {"reason", denial.reason}, {"decision", denial.decision}};
}

void read(const Json& json, Denial& denial) {
  json.at("attempt").get_to(denial.attempt);
  json.at("reason").get_to(denial.reason);
  json.at("decision").get_to(denial.decision);
}

// JSON written by hand, as this is done for every create. Names of policies need no escapes.

/// Empty where nothing was measured.
std::string phases_of(const placement::DecisionTimes& times) {
  if (times.decide.count() == 0) return {};
  std::string policies;
  for (const auto& [policy, time] : times.policies) {
    policies += fmt::format("{}\"{}\":{}", policies.empty() ? ",\"plugins\":{" : ",", policy, time.count());
  }
  return fmt::format("{{\"queued_us\":{},\"decide_us\":{}{}{}}}", times.queued.count(), times.decide.count(), policies,
                     policies.empty() ? "" : "}");
}

std::string phases_of(const std::optional<CreateTimes>& times) {
  if (!times) return {};
  return fmt::format("{{\"write_us\":{},\"neighbours_us\":{},\"runtime_us\":{}}}", times->write.count(),
                     times->neighbours.count(), times->runtime.count());
}

/// JSON holds UTF-8 only: other bytes are replaced.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A value as a column.

store::Value to_value(const std::string& text) { return text; }
store::Value to_value(bool flag) { return std::int64_t{flag}; }
store::Value to_value(std::int64_t number) { return number; }
store::Value to_value(std::uint32_t number) { return std::int64_t{number}; }
store::Value to_value(std::uint64_t number) { return static_cast<std::int64_t>(number); }
store::Value to_value(std::chrono::milliseconds time) { return std::int64_t{time.count()}; }
store::Value to_value(const CpuSet& set) { return set.to_string(); }
store::Value to_value(const NodeSet& set) { return set.to_string(); }
store::Value to_value(placement::Mode mode) { return std::string(to_string(mode)); }
store::Value to_value(placement::Qos qos) { return std::string(to_string(qos)); }
store::Value to_value(placement::Certainty certainty) { return std::string(to_string(certainty)); }
store::Value to_value(Squeeze squeeze) { return std::string(to_string(squeeze)); }
store::Value to_value(QuotaState quota) { return std::string(to_string(quota)); }
store::Value to_value(Phase phase) { return std::string(to_string(phase)); }
store::Value to_value(const placement::AddedFields& added) {
  return added == placement::AddedFields() ? std::string() : text_of(json_of(added));
}
store::Value to_value(const std::vector<std::string>& texts) { return texts.empty() ? std::string() : text_of(texts); }
template <class T>
store::Value to_value(const std::optional<T>& value) {
  return value ? text_of(json_of(*value)) : std::string();
}
template <class T>
store::Value to_value(const std::map<std::string, T>& map) {
  if (map.empty()) return std::string();
  Json json = Json::object();
  for (const auto& [key, value] : map) {
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::int64_t>) {
      json[key] = value;
    } else {
      json[key] = json_of(value);
    }
  }
  return text_of(json);
}
store::Value to_value(const SharedStringMap& map) { return to_value<std::string>(map); }

// Decodes them. A value that cannot be read throws, which ends in decode_all().

const std::string& text(const store::Value& value) { return std::get<std::string>(value); }
std::int64_t number(const store::Value& value) { return std::get<std::int64_t>(value); }

void from_value(const store::Value& value, std::string& into) { into = text(value); }
void from_value(const store::Value& value, bool& into) {
  const std::int64_t flag = number(value);
  if (flag != 0 && flag != 1) throw std::runtime_error(fmt::format("{} is neither 0 nor 1", flag));
  into = flag == 1;
}
void from_value(const store::Value& value, std::int64_t& into) { into = number(value); }
void from_value(const store::Value& value, std::uint32_t& into) {
  const std::int64_t wide = number(value);
  if (!std::in_range<std::uint32_t>(wide)) throw std::runtime_error(fmt::format("{} is out of range", wide));
  into = static_cast<std::uint32_t>(wide);
}
void from_value(const store::Value& value, std::uint64_t& into) { into = static_cast<std::uint64_t>(number(value)); }
void from_value(const store::Value& value, std::chrono::milliseconds& into) {
  into = std::chrono::milliseconds(number(value));
}
template <class Tag>
void from_value(const store::Value& value, IndexSet<Tag>& into) {
  auto parsed = IndexSet<Tag>::parse(text(value));
  if (!parsed) throw std::runtime_error(parsed.error().message);
  into = *std::move(parsed);
}
void from_value(const store::Value& value, placement::Mode& into) { read_name(text(value), kModes, into); }
void from_value(const store::Value& value, placement::Qos& into) { read_name(text(value), kQos, into); }
void from_value(const store::Value& value, placement::Certainty& into) { read_name(text(value), kCertainties, into); }
void from_value(const store::Value& value, Squeeze& into) { read_name(text(value), kSqueezes, into); }
void from_value(const store::Value& value, QuotaState& into) { read_name(text(value), kQuotaStates, into); }
void from_value(const store::Value& value, Phase& into) {
  const auto phase = phase_from(text(value));
  if (!phase) throw std::runtime_error("'" + text(value) + "' is not known");
  into = *phase;
}
void from_value(const store::Value& value, placement::AddedFields& into) {
  if (!text(value).empty()) read(Json::parse(text(value)), into);
}
void from_value(const store::Value& value, std::vector<std::string>& into) {
  if (!text(value).empty()) Json::parse(text(value)).get_to(into);
}
template <class T>
void from_value(const store::Value& value, std::optional<T>& into) {
  into.reset();
  if (!text(value).empty()) read(Json::parse(text(value)), into.emplace());
}
template <class T>
void from_value(const store::Value& value, std::map<std::string, T>& into) {
  into.clear();
  if (text(value).empty()) return;
  const Json json = Json::parse(text(value));
  for (const auto& [key, entry] : json.items()) {
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::int64_t>) {
      entry.get_to(into[key]);
    } else {
      read(entry, into[key]);
    }
  }
}
void from_value(const store::Value& value, SharedStringMap& into) {
  SharedStringMap::Map map;
  from_value(value, map);
  into = std::move(map);
}

/// The column `state` of `allocation`: the phase in short, for people.
std::string state_column_of(const Allocation& allocation) {
  return allocation.is_bound() ? "bound" : std::string(to_string(allocation.phase));
}

std::int64_t pending_since(const Allocation& allocation) {
  return (allocation.phase == Phase::kInDoubt ? allocation.doubt_since : allocation.phase_since).count();
}

void add_derived(const Allocation& allocation, store::Columns& columns) {
  columns.emplace_back("state", state_column_of(allocation));
  columns.emplace_back("pending_since_ms", pending_since(allocation));
}

/// One reader for both kinds of rows.
template <class Of, class ForEach>
Result<Of> decode_all(const std::map<std::string, store::Value>& columns, ForEach for_each) {
  Of read;
  Status status;
  for_each(read, [&](const char* column, auto& field) {
    const auto found = columns.find(column);
    if (found == columns.end() || !status) return;
    try {
      from_value(found->second, field);
    } catch (const std::exception& error) {
      status = Error{Code::kDataLoss, fmt::format("column {}: {}", column, error.what())};
    }
  });
  if (!status) return status.error();
  return read;
}

store::DecidedRow row_of(const Transition& transition, const AuditEntry& audit) {
  store::DecidedRow row;
  row.at_ms = transition.wall_time.count();
  row.generation = transition.generation;
  row.event = to_string(audit.event);
  row.reason = audit.reason;
  row.nodes = audit.nodes.to_string();
  row.reason_code = audit.reason_code;
  row.caused_by = audit.caused_by;
  row.phases = phases_of(audit.times);
  if (audit.setup != 0) row.setup = audit.setup;
  if (audit.verdicts) row.verdicts = encode_verdicts(*audit.verdicts);
  return row;
}

void describe(const placement::Workload& workload, const Transition& transition, store::DecidedRow& row) {
  row.pod_uid = workload.key.pod_uid;
  row.pod_namespace = workload.pod_namespace;
  row.pod_name = workload.pod_name;
  row.container = workload.key.name;
  row.attempt = workload.key.attempt;
  row.sandbox_id = workload.key.sandbox_id;
  row.runtime_handler = workload.runtime_handler;
  row.qos = to_string(workload.qos);
  row.cpu_request_milli = workload.demand.cpu_request_milli;
  row.cpu_request_certainty = to_string(workload.demand.cpu_request_certainty);
  row.cpu_limit_milli = workload.demand.cpu_limit_milli;
  row.memory_request_bytes = workload.demand.memory_request_bytes;
  row.memory_limit_bytes = workload.demand.memory_limit_bytes;
  row.memory_request_estimated = workload.demand.memory_request_estimated;
  row.oom_score_adj = workload.demand.oom_score_adj;
  row.hugepage_limit_bytes = workload.demand.hugepage_limit_bytes;
  row.settings = workload.settings;
  row.kubelet_cpus = workload.kubelet_cpus;
  row.kubelet_mems = workload.kubelet_mems;
  row.devices = devices_json(workload, transition.machine.get());
}

Status write_decided(store::Store& store, const Transition& transition, const Change& change) {
  const Allocation& after = *change.after;
  store::DecidedRow row = row_of(transition, *change.audit);
  row.decision = after.decision;
  row.supersedes = change.supersedes;
  describe(after.workload, transition, row);
  row.container_id = change.before ? change.before->container_id : after.container_id;
  row.mode = to_string(after.placement.mode);
  row.cpus = after.placement.cpus;
  row.within = after.within;
  row.withheld = after.effective_withheld();
  row.mems = after.placement.mems;
  row.conflict = after.conflict;
  const auto added = store.add(row);
  if (!added) return added.error();
  return store.put_allocation(after.decision, encode(after));
}

Status write_outcome(store::Store& store, const Transition& transition, const Change& change) {
  const Allocation& about = change.after ? *change.after : *change.before;
  store::OutcomeRow row;
  row.decision = about.decision;
  row.at_ms = transition.wall_time.count();
  row.state = change.outcome->state;
  row.container_id = about.container_id;
  row.code = static_cast<int>(change.outcome->code);
  row.message = change.outcome->message;
  row.phases = phases_of(change.outcome->times);
  return store.add(row);
}

Status write_change(store::Store& store, const Transition& transition, const Change& change) {
  if (change.after && change.audit) {
    if (Status written = write_decided(store, transition, change); !written) return written;
  } else if (change.after) {
    const store::Columns columns = encode_changes(*change.before, *change.after);
    if (Status written = store.update_allocation(change.after->decision, columns); !written) return written;
  }
  if (change.outcome) {
    if (Status written = write_outcome(store, transition, change); !written) return written;
  }
  if (change.after || change.cause.empty()) return {};
  return store.add(
      store::EndedRow{change.before->decision, transition.wall_time.count(), transition.generation, change.cause});
}

Status write_recorded_event(store::Store& store, const Transition& transition, const RecordedEvent& recorded) {
  store::DecidedRow row = row_of(transition, recorded.audit);
  row.decision = recorded.decision;
  row.holds = false;
  if (recorded.subject) {
    describe(recorded.subject->workload, transition, row);
    row.container_id = recorded.subject->container_id;
    if (!row.container_id.empty()) {
      row.mode = to_string(recorded.subject->placement.mode);
      row.cpus = recorded.subject->placement.cpus;
    }
  }
  const auto added = store.add(row);
  return added ? Status() : Status(added.error());
}

/// Returns the lowest CPU of the CPU's group: a name that no other group has.
std::optional<std::uint32_t> first_of(const std::vector<CpuSet>& groups, std::uint32_t position) {
  if (position == topology::kNoPosition || groups[position].empty()) return std::nullopt;
  return *groups[position].begin();
}

store::TopologyRow topology_row(const Transition& transition) {
  const topology::Topology& topology = *transition.topology;
  const CpuInventory& inventory = transition.topology_inventory;
  store::TopologyRow row{transition.generation,
                         transition.wall_time.count(),
                         inventory.allowed,
                         inventory.reserved,
                         inventory.isolated,
                         {},
                         {}};
  for (const topology::Pu& pu : topology.pus) {
    store::TopologyRow::Cpu& cpu = row.cpus.emplace_back();
    cpu.cpu = pu.os_index;
    if (pu.node != topology::kNoPosition) cpu.node = topology.nodes[pu.node].os_index;
    cpu.core = first_of(topology.cores, pu.core).value_or(pu.os_index);
    cpu.l3 = first_of(topology.l3s, pu.l3);
    if (pu.package != topology::kNoPosition) cpu.package = pu.package;
  }
  for (const topology::Node& node : topology.nodes) {
    row.nodes.push_back({node.os_index, node.cpus, node.memory_bytes, node.memory_only});
  }
  row.devices = device_rows(topology);
  return row;
}

}  // namespace

store::Columns encode(const Allocation& allocation) {
  store::Columns columns;
  for_each_field_of_allocation(
      allocation, [&](const char* column, const auto& field) { columns.emplace_back(column, to_value(field)); });
  add_derived(allocation, columns);
  return columns;
}

store::Columns encode_changes(const Allocation& before, const Allocation& after) {
  // The fields of both come in the same order and with the same types.
  std::vector<const void*> old;
  for_each_field_of_allocation(before, [&](const char*, const auto& field) { old.push_back(&field); });
  store::Columns columns;
  std::size_t position = 0;
  for_each_field_of_allocation(after, [&](const char* column, const auto& field) {
    const auto& was = *static_cast<std::remove_reference_t<decltype(field)>*>(old[position++]);
    if (!(was == field)) columns.emplace_back(column, to_value(field));
  });
  if (before.phase != after.phase || pending_since(before) != pending_since(after)) add_derived(after, columns);
  return columns;
}

Result<Allocation> decode_allocation(const store::AllocationRow& row) {
  auto allocation = decode_all<Allocation>(
      row.columns, [](Allocation& into, auto field) { for_each_field_of_allocation(into, field); });
  if (!allocation) {
    return Error{Code::kDataLoss, fmt::format("decision {}: {}", row.decision, allocation.error().message)};
  }
  allocation->decision = row.decision;
  return allocation;
}

store::Columns encode(const Pod& pod) {
  store::Columns columns;
  for_each_field_of_pod(pod,
                        [&](const char* column, const auto& field) { columns.emplace_back(column, to_value(field)); });
  return columns;
}

Result<Pod> decode_pod(const store::PodRow& row) {
  return decode_all<Pod>(row, [](Pod& into, auto field) { for_each_field_of_pod(into, field); });
}

store::Columns encode(const ToldCapacity& told) {
  store::Columns columns;
  for_each_field_of_capacity(
      told, [&](const char* column, const auto& field) { columns.emplace_back(column, to_value(field)); });
  return columns;
}

Result<ToldCapacity> decode_capacity(const store::CapacityRow& row) {
  auto told = decode_all<ToldCapacity>(row.columns,
                                       [](ToldCapacity& into, auto field) { for_each_field_of_capacity(into, field); });
  if (!told) return Error{Code::kDataLoss, fmt::format("told capacity of node {}: {}", row.node, told.error().message)};
  told->node = row.node;
  return told;
}

Status write(store::Store& store, const Transition& transition) {
  for (const RecordedEvent& recorded : transition.recorded_events) {
    if (Status written = write_recorded_event(store, transition, recorded); !written) return written;
  }
  for (const Change& change : transition.changes) {
    if (Status written = write_change(store, transition, change); !written) return written;
  }
  if (transition.writes_pool || transition.pool != transition.pool_before) {
    Status written = store.add(store::PoolRow{transition.generation, transition.wall_time.count(), transition.pool,
                                              transition.free_reserved, transition.free_isolated,
                                              transition.pool_cause.decision, transition.pool_cause.what});
    if (!written) return written;
  }
  if (transition.topology) {
    if (Status written = store.add(topology_row(transition)); !written) return written;
  }
  if (transition.setup) {
    const Setup& setup = *transition.setup;
    Status written = store.add(store::SetupRow{setup.number, transition.generation, transition.wall_time.count(),
                                               setup.version, setup.config_text, setup.plugins});
    if (!written) return written;
  }
  for (const PodChange& change : transition.pods) {
    Status written = change.after ? store.put_pod(encode(*change.after)) : store.remove_pod(change.sandbox_id);
    if (!written) return written;
  }
  for (const CapacityChange& change : transition.capacities) {
    Status written =
        change.after ? store.put_capacity(change.node, encode(*change.after)) : store.remove_capacity(change.node);
    if (!written) return written;
  }
  for (const RepeatedDenial& repeated : transition.repeated) {
    if (Status written = store.count_repeat(repeated.decision, transition.wall_time.count()); !written) return written;
  }
  return store.set_generation(transition.generation);
}

}  // namespace topolet::engine
