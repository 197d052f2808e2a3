#include "core/audit/table_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/audit/device_usage.hpp"
#include "core/audit/history.hpp"
#include "core/audit/judged.hpp"
#include "core/audit/machine_record.hpp"
#include "core/audit/moves.hpp"
#include "core/audit/node_usage.hpp"
#include "core/audit/time_text.hpp"
#include "core/base/clock.hpp"
#include "core/base/rfc3339.hpp"
#include "store/table_function.hpp"

namespace topolet::audit {
namespace {

using store::Cell;
using store::CellRow;
using Rows = Result<std::vector<CellRow>>;

std::int64_t count_of(const CpuSet& cpus) { return static_cast<std::int64_t>(cpus.size()); }

/// Reads a time; `otherwise` if it is left out.
Result<std::int64_t> time_of(const Cell& cell, std::int64_t otherwise) {
  if (std::holds_alternative<std::monostate>(cell)) return otherwise;
  if (const auto* const number = std::get_if<std::int64_t>(&cell)) return *number;
  if (const auto* const text = std::get_if<std::string>(&cell)) return parse_time(*text, Clock().wall().count());
  return Error{Code::kInvalidArgument, "a time is a text, or a whole number of milliseconds since 1970"};
}

std::int64_t now() { return Clock().wall().count(); }

CellRow held_row(const State& state, const Record& record) {
  return {record.decision,
          record.pod_namespace,
          record.pod_name,
          record.container,
          record.attempt,
          record.container_id,
          record.qos,
          std::string(to_string(record.mode)),
          state.cpus_of(record).to_string(),
          state.withheld_of(record).to_string(),
          record.mems.to_string(),
          record.nodes,
          record.cpu_request_milli,
          record.memory_request_bytes,
          rfc3339_ms(std::chrono::milliseconds(record.at_ms)),
          record.reason,
          record.pod_uid};
}

std::vector<std::string> held_columns() {
  return {"decision", "namespace", "pod",      "container", "attempt", "container_id",      "qos",
          "mode",     "cpus",      "withheld", "mems",      "nodes",   "cpu_request_milli", "memory_request_bytes",
          "since",    "reason",    "pod_uid"};
}

Rows held_at(const store::Database& database, const CellRow& arguments) {
  const auto at = time_of(arguments[0], now());
  if (!at) return at.error();
  const auto state = History(database).at(*at);
  if (!state) return state.error();
  std::vector<CellRow> rows;
  for (const auto& [decision, record] : state->held()) rows.push_back(held_row(*state, record));
  return rows;
}

Rows on_cpu(const store::Database& database, const CellRow& arguments) {
  const auto* const cpu = std::get_if<std::int64_t>(&arguments[0]);
  if (cpu == nullptr || *cpu < 0) return Error{Code::kInvalidArgument, "on_cpu(cpu, time) needs the number of a CPU"};
  const auto at = time_of(arguments[1], now());
  if (!at) return at.error();
  const auto state = History(database).at(*at);
  if (!state) return state.error();
  std::vector<CellRow> rows;
  for (const auto& [decision, record] : state->held()) {
    const bool is_on = state->cpus_of(record).contains(static_cast<std::uint32_t>(*cpu));
    if (!is_on && !state->withheld_of(record).contains(static_cast<std::uint32_t>(*cpu))) continue;
    rows.push_back(held_row(*state, record));
    rows.back().emplace_back(std::string(is_on ? "runs" : "keeps it idle"));
  }
  return rows;
}

/// The container of a decision; NULL if that is not there any more.
Cell name_of(const History& history, std::int64_t decision) {
  const auto record = history.decision(decision);
  if (!record) return {};
  return fmt::format("{}/{}/{}", record->pod_namespace, record->pod_name, record->container);
}

template <class Count>
Cell cell_of(const std::optional<Count>& count) {
  return count ? Cell(static_cast<std::int64_t>(*count)) : Cell();
}

void append(CellRow& row, const MoveEffects& effects) {
  const auto count = [](std::size_t value) { return Cell(static_cast<std::int64_t>(value)); };
  row.insert(row.end(),
             {count(effects.before.nodes), count(effects.after.nodes), count(effects.before.l3s),
              count(effects.after.l3s), cell_of(effects.before.remote_cpus), cell_of(effects.after.remote_cpus),
              count(effects.moved_cpus), cell_of(effects.memory_left_bytes)});
}

Rows moves(const store::Database& database, const CellRow& arguments) {
  const auto since = time_of(arguments[0], now() - 3'600'000);
  if (!since) return since.error();
  const auto until = time_of(arguments[1], now());
  if (!until) return until.error();
  const History history(database);
  const auto moved = moves_between(history, *since, *until);
  if (!moved) return moved.error();
  std::vector<CellRow> rows;
  std::map<std::int64_t, Cell> causes;
  for (const Moved& move : *moved) {
    CellRow row{rfc3339_ms(std::chrono::milliseconds(move.at_ms)),
                move.record.pod_namespace,
                move.record.pod_name,
                move.record.container,
                move.from.to_string(),
                move.to.to_string(),
                move.kind,
                move.cause,
                Cell(),
                Cell(),
                move.record.decision,
                move.with_pool ? Cell() : Cell(move.record.reason)};
    append(row, move.effects);
    if (move.caused_by) {
      row[8] = *move.caused_by;
      const auto [cause, is_new] = causes.try_emplace(*move.caused_by);
      if (is_new) cause->second = name_of(history, *move.caused_by);
      row[9] = cause->second;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Rows node_usage_at(const store::Database& database, const CellRow& arguments) {
  const auto at = time_of(arguments[0], now());
  if (!at) return at.error();
  const auto state = History(database).at(*at);
  if (!state) return state.error();
  const auto machine = machine_at(database, *at);
  if (!machine) return machine.error();
  std::vector<CellRow> rows;
  if (!*machine) return rows;
  const auto* const min_shared = std::get_if<std::int64_t>(&arguments[1]);
  const std::size_t kept = min_shared == nullptr ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(0, *min_shared));
  for (const NodeUsage& usage : usage_by_node(**machine, *state, kept)) {
    rows.push_back({std::int64_t{usage.node}, usage.cpus.to_string(), count_of(usage.exclusive),
                    count_of(usage.withheld), count_of(usage.reserved), count_of(usage.pool), count_of(usage.isolated),
                    static_cast<std::int64_t>(usage.largest_exclusive), usage.shared_request_milli, usage.memory_bytes,
                    usage.memory_request_bytes, static_cast<std::int64_t>(usage.containers),
                    static_cast<std::int64_t>(usage.could_be_narrower)});
  }
  return rows;
}

/// A row for each device and container that names it, and one for each device that none names.
Rows device_rows(const store::Database& database, const CellRow& arguments) {
  const auto at = time_of(arguments[0], now());
  if (!at) return at.error();
  const auto devices = devices_at(database, *at);
  if (!devices) return devices.error();
  std::vector<CellRow> rows;
  for (const auto& [device, containers] : *devices) {
    const CellRow row{device.name, device.address, device.kind, device.nodes.to_string()};
    for (const Record& record : containers) {
      rows.push_back(row);
      rows.back().insert(rows.back().end(), {record.decision, record.pod_namespace, record.pod_name, record.container});
    }
    if (!containers.empty()) continue;
    rows.push_back(row);
    rows.back().resize(row.size() + 4);
  }
  return rows;
}

/// No row if no decision judged anything.
Rows judged_rows(const store::Database& database, const CellRow& arguments) {
  const auto* const decision = std::get_if<std::int64_t>(&arguments[0]);
  if (decision == nullptr) return Error{Code::kInvalidArgument, "judged_in(decision) needs the number of a decision"};
  const auto judged = judged_in(database, *decision);
  if (!judged) return judged.error();
  std::vector<CellRow> rows;
  if (*judged) rows.push_back({**judged});
  return rows;
}

/// Gives 1 if two lists of CPUs or nodes have one in common.
Result<store::Cell> cpus_overlap(const CellRow& arguments) {
  CpuSet sets[2];
  for (int i = 0; i < 2; ++i) {
    const auto* const list = std::get_if<std::string>(&arguments[i]);
    if (list == nullptr) return store::Cell(std::int64_t{0});
    auto parsed = CpuSet::parse(*list);
    if (!parsed) return parsed.error();
    sets[i] = *std::move(parsed);
  }
  return store::Cell(std::int64_t{sets[0].intersects(sets[1])});
}

/// Gives the CPUs or nodes that two lists have in common.
Result<store::Cell> cpus_common(const CellRow& arguments) {
  CpuSet sets[2];
  for (int i = 0; i < 2; ++i) {
    const auto* const list = std::get_if<std::string>(&arguments[i]);
    if (list == nullptr) return store::Cell();
    auto parsed = CpuSet::parse(*list);
    if (!parsed) return parsed.error();
    sets[i] = *std::move(parsed);
  }
  return store::Cell((sets[0] & sets[1]).to_string());
}

/// How many CPUs or nodes a list has.
Result<store::Cell> cpu_count(const CellRow& arguments) {
  const auto* const list = std::get_if<std::string>(&arguments[0]);
  if (list == nullptr) return store::Cell();
  const auto cpus = CpuSet::parse(*list);
  if (!cpus) return cpus.error();
  return store::Cell(count_of(*cpus));
}

/// A time as the columns `…_ms` have it.
Result<store::Cell> moment(const CellRow& arguments) {
  if (std::holds_alternative<std::monostate>(arguments[0])) return store::Cell();
  const auto at = time_of(arguments[0], 0);
  if (!at) return at.error();
  return store::Cell(*at);
}

}  // namespace

Status add_table_functions(store::Database& database) {
  std::vector<std::string> on_cpu_columns = held_columns();
  on_cpu_columns.emplace_back("how");
  const store::TableFunction functions[] = {
      {"held_at", held_columns(), {"time"}, held_at},
      {"on_cpu", std::move(on_cpu_columns), {"cpu", "time"}, on_cpu},
      {"moves",
       {"at",
        "namespace",
        "pod",
        "container",
        "from_cpus",
        "to_cpus",
        "kind",
        "cause",
        "caused_by",
        "caused_by_container",
        "decision",
        "reason",
        "nodes_before",
        "nodes_after",
        "l3s_before",
        "l3s_after",
        "remote_cpus_before",
        "remote_cpus_after",
        "moved_cpus",
        "memory_left_bytes"},
       {"since", "until"},
       moves},
      {"node_usage_at",
       {"node", "cpus", "exclusive", "withheld", "reserved", "pool", "isolated", "largest_exclusive",
        "shared_request_milli", "memory_bytes", "memory_request_bytes", "containers", "could_be_narrower"},
       {"time", "min_shared_cpus"},
       node_usage_at},
      {"devices_at",
       {"name", "address", "kind", "nodes", "decision", "namespace", "pod", "container"},
       {"time"},
       device_rows},
      {"judged_in", {"judged"}, {"decision"}, judged_rows},
  };
  const store::ScalarFunction scalars[] = {{"cpus_overlap", 2, cpus_overlap},
                                           {"cpus_common", 2, cpus_common},
                                           {"cpu_count", 1, cpu_count},
                                           {"moment", 1, moment}};
  for (const store::ScalarFunction& function : scalars) {
    if (Status added = add_scalar_function(database, function); !added) return added;
  }
  for (const store::TableFunction& function : functions) {
    if (Status added = add_table_function(database, function); !added) return added;
  }
  return {};
}

}  // namespace topolet::audit
