#include "core/engine/state/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/engine/state/stored_fields.hpp"

namespace topolet::engine {
namespace {

using Json = nlohmann::json;

constexpr std::array kModes{placement::Mode::kExclusive, placement::Mode::kShared, placement::Mode::kReserved,
                            placement::Mode::kForeign};
constexpr std::array kSqueezes{Squeeze::kNone, Squeeze::kPlaced, Squeeze::kLeftToKernel};
constexpr std::array kQuotaStates{QuotaState::kAsAsked, QuotaState::kDropped, QuotaState::kGivenBack};
constexpr std::array kMoveCauses{MoveCause::kHeal, MoveCause::kRoom, MoveCause::kCrowd, MoveCause::kReturn,
                                 MoveCause::kPlugin};
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
  json.at("cpu_period_us").get_to(demand.cpu_period_us);
  read_name(json.at("cpu_request_certainty").get<std::string>(), kCertainties, demand.cpu_request_certainty);
  json.at("cpu_limit_milli").get_to(demand.cpu_limit_milli);
  json.at("memory_request_bytes").get_to(demand.memory_request_bytes);
  json.at("memory_request_estimated").get_to(demand.memory_request_estimated);
  json.at("memory_limit_bytes").get_to(demand.memory_limit_bytes);
  json.at("hugepages").get_to(demand.hugepage_limit_bytes);
  json.at("oom_score_adj").get_to(demand.oom_score_adj);
}

template <class Set>
void read_set(const Json& json, const char* name, Set& set) {
  auto parsed = Set::parse(json.at(name).get<std::string>());
  if (!parsed) throw std::runtime_error(parsed.error().message);
  set = *std::move(parsed);
}

Json json_of(const placement::MemoryPolicy& policy) {
  return {{"mode", to_string(policy.mode)},
          {"nodes", policy.nodes.to_string()},
          {"static_nodes", policy.static_nodes},
          {"relative_nodes", policy.relative_nodes},
          {"numa_balancing", policy.numa_balancing}};
}

void read(const Json& json, placement::MemoryPolicy& policy) {
  read_name(json.at("mode").get<std::string>(), placement::kMemoryModes, policy.mode);
  read_set(json, "nodes", policy.nodes);
  json.at("static_nodes").get_to(policy.static_nodes);
  json.at("relative_nodes").get_to(policy.relative_nodes);
  json.at("numa_balancing").get_to(policy.numa_balancing);
}

Json json_of(const placement::Scheduler& scheduler) {
  return {{"class", to_string(scheduler.scheduler_class)}, {"nice", scheduler.nice}};
}

void read(const Json& json, placement::Scheduler& scheduler) {
  read_name(json.at("class").get<std::string>(), placement::kSchedulerClasses, scheduler.scheduler_class);
  json.at("nice").get_to(scheduler.nice);
}

Json json_of(const placement::IoPriority& io_priority) {
  return {{"class", to_string(io_priority.io_class)}, {"priority", io_priority.priority}};
}

void read(const Json& json, placement::IoPriority& io_priority) {
  read_name(json.at("class").get<std::string>(), placement::kIoClasses, io_priority.io_class);
  json.at("priority").get_to(io_priority.priority);
}

// A setting that there is none of is null.
template <class Setting>
Json setting_json(const std::optional<Setting>& setting) {
  return setting ? json_of(*setting) : Json();
}

template <class Setting>
void read_setting(const Json& json, std::optional<Setting>& setting) {
  setting.reset();
  if (!json.is_null()) read(json, setting.emplace());
}

Json json_of(const placement::AddedFields& added) {
  return {{"env", added.env},
          {"annotations", added.annotations},
          {"tags", added.tags},
          {"unified", added.unified},
          {"rdt_class", added.rdt_class},
          {"memory_policy", setting_json(added.memory_policy)},
          {"scheduler", setting_json(added.scheduler)},
          {"io_priority", setting_json(added.io_priority)}};
}

void read(const Json& json, placement::AddedFields& added) {
  json.at("env").get_to(added.env);
  json.at("annotations").get_to(added.annotations);
  json.at("tags").get_to(added.tags);
  json.at("unified").get_to(added.unified);
  json.at("rdt_class").get_to(added.rdt_class);
  read_setting(json.at("memory_policy"), added.memory_policy);
  read_setting(json.at("scheduler"), added.scheduler);
  read_setting(json.at("io_priority"), added.io_priority);
}

Json json_of(const Preferred& preferred) {
  return {{"mode", to_string(preferred.placement.mode)},
          {"cpus", preferred.placement.cpus.to_string()},
          {"withheld", preferred.placement.withheld.to_string()},
          {"mems", preferred.placement.mems.to_string()},
          {"within", preferred.within.to_string()},
          {"nodes", preferred.nodes.to_string()},
          {"whole", preferred.waits_for_all},
          {"due", preferred.is_due}};
}

void read(const Json& json, Preferred& preferred) {
  read_name(json.at("mode").get<std::string>(), kModes, preferred.placement.mode);
  read_set(json, "cpus", preferred.placement.cpus);
  read_set(json, "withheld", preferred.placement.withheld);
  read_set(json, "mems", preferred.placement.mems);
  read_set(json, "within", preferred.within);
  read_set(json, "nodes", preferred.nodes);
  json.at("whole").get_to(preferred.waits_for_all);
  json.at("due").get_to(preferred.is_due);
}

Json json_of(const Overruled& overruled) {
  return {{"since_ms", overruled.since.count()},
          {"ours_since_ms", overruled.ours_since.count()},
          {"cpus", overruled.cpus.to_string()},
          {"plugin", overruled.plugin}};
}

void read(const Json& json, Overruled& overruled) {
  overruled.since = std::chrono::milliseconds(json.at("since_ms").get<std::int64_t>());
  overruled.ours_since = std::chrono::milliseconds(json.at("ours_since_ms").get<std::int64_t>());
  read_set(json, "cpus", overruled.cpus);
  json.at("plugin").get_to(overruled.plugin);
}

Json json_of(const Hand& hand) { return {{"repaired_ms", hand.repaired_at.count()}, {"repairs", hand.repairs}}; }

void read(const Json& json, Hand& hand) {
  hand.repaired_at = std::chrono::milliseconds(json.at("repaired_ms").get<std::int64_t>());
  json.at("repairs").get_to(hand.repairs);
}

Json json_of(const LastMove& move) { return {{"at_ms", move.at.count()}, {"cause", to_string(move.cause)}}; }

void read(const Json& json, LastMove& move) {
  move.at = std::chrono::milliseconds(json.at("at_ms").get<std::int64_t>());
  read_name(json.at("cause").get<std::string>(), kMoveCauses, move.cause);
}

Json json_of(const Widening& widening) {
  return {{"cpus", widening.cpus.to_string()},
          {"at_ms", widening.at.count()},
          {"use_permille", widening.use_permille},
          {"not_before_ms", widening.not_before.count()}};
}

void read(const Json& json, Widening& widening) {
  read_set(json, "cpus", widening.cpus);
  widening.at = std::chrono::milliseconds(json.at("at_ms").get<std::int64_t>());
  json.at("use_permille").get_to(widening.use_permille);
  widening.not_before = std::chrono::milliseconds(json.at("not_before_ms").get<std::int64_t>());
}

Json json_of(const placement::ContainerKey& key) {
  return {{"pod_uid", key.pod_uid}, {"container", key.name}, {"attempt", key.attempt}, {"sandbox_id", key.sandbox_id}};
}

void read(const Json& json, placement::ContainerKey& key) {
  json.at("pod_uid").get_to(key.pod_uid);
  json.at("container").get_to(key.name);
  json.at("attempt").get_to(key.attempt);
  json.at("sandbox_id").get_to(key.sandbox_id);
}

template <class T>
Json json_of_optional(const std::optional<T>& value) {
  return value ? json_of(*value) : Json();
}

template <class T>
void read_optional(const Json& json, const char* name, std::optional<T>& value) {
  if (const Json& stored = json.at(name); !stored.is_null()) read(stored, value.emplace());
}

SharedStringMap::Map map_of(const SharedStringMap& map) { return map; }

Json json_of(const MovedFrom& from) {
  return {{"mode", to_string(from.placement.mode)},
          {"cpus", from.placement.cpus.to_string()},
          {"withheld", from.placement.withheld.to_string()},
          {"mems", from.placement.mems.to_string()},
          {"mems_to_keep", from.mems_to_keep.to_string()},
          {"within", from.within.to_string()},
          {"nodes", from.nodes.to_string()},
          {"reason", from.reason},
          {"preferred", json_of_optional(from.preferred)},
          {"arrived_cpus", from.arrived_cpus.to_string()},
          {"evaluated_cpus", from.evaluated_cpus.to_string()},
          {"restricted", from.restricted},
          {"squeezed", to_string(from.squeeze)},
          {"unified", map_of(from.unified)},
          {"tags", map_of(from.tags)},
          {"demand", json_of_optional(from.demand)},
          {"newcomer", json_of_optional(from.newcomer)}};
}

void read(const Json& json, MovedFrom& from) {
  read_name(json.at("mode").get<std::string>(), kModes, from.placement.mode);
  read_set(json, "cpus", from.placement.cpus);
  read_set(json, "withheld", from.placement.withheld);
  read_set(json, "mems", from.placement.mems);
  read_set(json, "mems_to_keep", from.mems_to_keep);
  read_set(json, "within", from.within);
  read_set(json, "nodes", from.nodes);
  json.at("reason").get_to(from.reason);
  read_optional(json, "preferred", from.preferred);
  read_set(json, "arrived_cpus", from.arrived_cpus);
  read_set(json, "evaluated_cpus", from.evaluated_cpus);
  json.at("restricted").get_to(from.restricted);
  read_name(json.at("squeezed").get<std::string>(), kSqueezes, from.squeeze);
  from.unified = json.at("unified").get<SharedStringMap::Map>();
  from.tags = json.at("tags").get<SharedStringMap::Map>();
  read_optional(json, "demand", from.demand);
  read_optional(json, "newcomer", from.newcomer);
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

Json json_of(const Waiting& waiting) { return {{"cpus", waiting.cpus}, {"since_ms", waiting.since.count()}}; }

void read(const Json& json, Waiting& waiting) {
  json.at("cpus").get_to(waiting.cpus);
  waiting.since = std::chrono::milliseconds(json.at("since_ms").get<std::int64_t>());
}

Json json_of(const Denial& denial) {
  return {{"attempt", denial.attempt}, {"reason", denial.reason}, {"decision", denial.decision}};
}

void read(const Json& json, Denial& denial) {
  json.at("attempt").get_to(denial.attempt);
  json.at("reason").get_to(denial.reason);
  json.at("decision").get_to(denial.decision);
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

/// The columns that are those of the row `whole_pool` where the allocation shares it.
bool is_in_pool_row(std::string_view column) {
  return column == "cpus" || column == "vacating" || column == "generation";
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
    if (!status) return;
    const auto found = columns.find(column);
    if (found == columns.end()) {
      status = Error{Code::kDataLoss, fmt::format("column {}: is missing", column)};
      return;
    }
    try {
      from_value(found->second, field);
    } catch (const std::exception& error) {
      status = Error{Code::kDataLoss, fmt::format("column {}: {}", column, error.what())};
    }
  });
  if (!status) return status.error();
  return read;
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
    const bool is_shared = is_in_pool_row(column);
    if (is_shared && after.shares_pool_row) return;
    // Its own row does not have what it has shared until now.
    const bool is_missing = is_shared && before.shares_pool_row;
    if (is_missing || !(was == field)) columns.emplace_back(column, to_value(field));
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

store::Columns encode(const ReportedCapacity& capacity) {
  store::Columns columns;
  for_each_field_of_capacity(
      capacity, [&](const char* column, const auto& field) { columns.emplace_back(column, to_value(field)); });
  return columns;
}

Result<ReportedCapacity> decode_capacity(const store::CapacityRow& row) {
  auto capacity = decode_all<ReportedCapacity>(
      row.columns, [](ReportedCapacity& into, auto field) { for_each_field_of_capacity(into, field); });
  if (!capacity)
    return Error{Code::kDataLoss, fmt::format("reported capacity of node {}: {}", row.node, capacity.error().message)};
  capacity->node = row.node;
  return capacity;
}

std::vector<store::RecentSizeRow> encode(const RecentSizes& sizes) {
  std::vector<store::RecentSizeRow> rows;
  for (const RecentSizes::Size& size : sizes.sizes()) rows.push_back({size.cpus, size.counted.count()});
  return rows;
}

RecentSizes decode_recent_sizes(const std::vector<store::RecentSizeRow>& rows) {
  std::vector<RecentSizes::Size> sizes;
  for (const store::RecentSizeRow& row : rows) sizes.push_back({row.cpus, std::chrono::milliseconds(row.counted_ms)});
  return RecentSizes(std::move(sizes));
}

}  // namespace topolet::engine
