#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/audit/history.hpp"
#include "core/audit/machine_record.hpp"
#include "core/audit/rows.hpp"
#include "core/base/clock.hpp"
#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/machine_map.hpp"
#include "core/cli/measured.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/state_database.hpp"
#include "core/placement/workload.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kPurpose = "draw the machine";

/// The CPUs that were online earlier in the boot of that moment. Those that were offline all the time are not known.
constexpr const char* kEarlierCpus = R"sql(
SELECT DISTINCT c.cpu FROM topology t JOIN topology_cpu c USING (topology)
WHERE t.at_ms <= ?1 AND t.boot = (SELECT boot FROM topology WHERE at_ms <= ?1 ORDER BY topology DESC LIMIT 1)
ORDER BY c.cpu)sql";

void add_machine(const audit::MachineRecord& machine, MachineMap& map) {
  map.allowed = machine.allowed;
  map.reserved = machine.reserved;
  map.isolated = machine.isolated;
  std::map<std::uint32_t, CpuSet> cores;
  for (const audit::MachineRecord::Cpu& cpu : machine.cpus) {
    map.online.insert(cpu.cpu);
    cores[cpu.core].insert(cpu.cpu);
  }
  for (auto& [first, core] : cores) map.cores.push_back(std::move(core));
  for (const audit::MachineRecord::Node& node : machine.nodes) {
    if (node.memory_only) {
      map.memory_only.insert(node.node);
    } else {
      map.nodes.push_back({node.node, node.cpus});
    }
  }
}

/// The last observation of containers that were given CPUs to have alone, by decision.
struct LostCpus {
  std::string lost;
  CpuSet on;
};
using LostByDecision = std::map<std::int64_t, LostCpus>;

constexpr const char* kLostCpus =
    "SELECT decision, mode, seen_on FROM current_placements WHERE mode IN ('overruled', 'drifted', 'overlapped')";

/// Nothing was seen of the past.
Result<LostByDecision> read_lost(const StateDatabase& database, bool is_now) {
  LostByDecision seen;
  if (!is_now) return seen;
  Status read = audit::for_each_row(database.connection(), kLostCpus, [&](const store::Statement& row) -> Status {
    LostCpus& of = seen[row.integer(0)];
    of.lost = row.text(1);
    return audit::parse_into(row.text(2), of.on);
  });
  if (!read) return read.error();
  return seen;
}

void add_holders(const audit::State& state, const LostByDecision& seen, MachineMap& map) {
  for (const auto& [decision, record] : state.held()) {
    CpuSet withheld = state.withheld_of(record);
    const bool is_exclusive = record.mode == placement::Mode::kExclusive;
    if (!is_exclusive && withheld.empty()) continue;
    map.holders.push_back({placement::display_name(record.pod_namespace, record.pod_name, record.container),
                           is_exclusive, state.cpus_of(record), std::move(withheld)});
    const auto found = seen.find(decision);
    if (!is_exclusive || found == seen.end()) continue;
    map.holders.back().lost = found->second.lost;
    map.holders.back().seen_on = found->second.on;
  }
  std::stable_sort(map.holders.begin(), map.holders.end(),
                   [](const auto& one, const auto& other) { return one.name < other.name; });
}

/// Nothing if the database does not tell what machine it is.
Result<std::optional<MachineMap>> read_then(const StateDatabase& state_database, std::int64_t at_ms, bool is_now) {
  const store::Database& database = state_database.connection();
  const auto machine = audit::machine_at(database, at_ms);
  if (!machine) return machine.error();
  if (!*machine) return std::optional<MachineMap>();
  const auto state = audit::History(database).at(at_ms);
  if (!state) return state.error();
  const auto seen = read_lost(state_database, is_now);
  if (!seen) return seen.error();
  MachineMap map;
  add_machine(**machine, map);
  add_holders(*state, *seen, map);
  Status read = audit::for_each_row(
      database, kEarlierCpus,
      [&](const store::Statement& row) -> Status {
        map.offline.insert(static_cast<std::uint32_t>(row.integer(0)));
        return {};
      },
      at_ms);
  if (!read) return read.error();
  map.offline -= map.online;
  return std::optional(std::move(map));
}

/// All of it as it was in one moment of the database, which topoletd may be writing.
Result<std::optional<MachineMap>> read_map(StateDatabase& database, std::int64_t at_ms, bool is_now) {
  store::Database& connection = database.connection();
  if (Status begun = connection.execute("BEGIN", kPurpose); !begun) return begun.error();
  auto map = read_then(database, at_ms, is_now);
  Status ended = connection.execute("COMMIT", kPurpose);
  if (!map) return map.error();
  if (!ended) return ended.error();
  return map;
}

Result<std::map<std::uint32_t, std::int64_t>> used_now(const Invocation& invocation) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  const auto load = ask_load(*daemon);
  if (!load) return load.error();
  std::map<std::uint32_t, std::int64_t> used;
  for (const control::v1::CpuLoad& cpu : load->cpus()) {
    if (cpu.has_used_milli()) used[cpu.cpu()] = cpu.used_milli();
  }
  return used;
}

std::string draw_known(const std::optional<MachineMap>& map) {
  return map ? draw(*map) : "the database does not tell what machine this is; topoletd records it when it starts\n";
}

/// Draws it anew whenever something has changed, until the program is stopped: on a terminal in the same place,
/// otherwise behind an empty line.
Status watch(StateDatabase& database) {
  constexpr std::chrono::seconds kPause{1};
  constexpr const char* kClear = "\033[H\033[2J";
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  std::optional<std::string> shown;
  std::optional<std::int64_t> known_version;
  while (true) {
    const auto version = database.connection().integer("PRAGMA data_version", kPurpose);
    if (!version) return version.error();
    if (known_version != *version) {
      known_version = *version;
      const auto map = read_map(database, Clock().wall().count(), true);
      if (!map) return map.error();
      std::string text = draw_known(*map);
      if (shown != text) {
        const std::string before = is_terminal ? kClear : shown ? "\n" : "";
        if (Status printed = write_at_once(before + text); !printed) return printed;
        shown = std::move(text);
      }
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

void declare_map(Options& options) {
  declare_database(options);
  declare_json(options);
  options.add_options()("at", po::value<std::string>()->value_name("TIME")->default_value("now"),
                        "When: as for `topolet cpu`.")(
      "watch", "Draw it again when something has changed, at most once a second, until stopped.")(
      "load", "Also show how much of each CPU is used now, as topoletd measures it.");
}

Status show_map(const Invocation& invocation) {
  const bool has_time = !invocation.values["at"].defaulted();
  if (invocation.has("watch") && (invocation.has("json") || has_time))
    return Error{Code::kInvalidArgument, "--watch draws what is now; leave out --json and --at"};
  if (invocation.has("load") && (invocation.has("watch") || has_time))
    return Error{Code::kInvalidArgument, "--load shows what is measured now; leave out --watch and --at"};
  const auto at = moment(invocation.text("at"));
  if (!at) return at.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  if (invocation.has("watch")) return watch(**database);
  auto map = read_map(**database, *at, !has_time);
  if (!map) return map.error();
  if (invocation.has("load") && *map) {
    auto used = used_now(invocation);
    if (!used) return used.error();
    (*map)->used_milli = *std::move(used);
  }
  if (!invocation.has("json")) return write_at_once(draw_known(*map));
  return write_at_once(to_text(*map ? to_json(**map) : nlohmann::ordered_json::array()));
}

}  // namespace topolet::cli
