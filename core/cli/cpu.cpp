#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <charconv>
#include <optional>

#include "core/audit/machine_record.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

std::optional<std::uint32_t> parse_cpu(const std::string& text) {
  std::uint32_t cpu = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return cpu;
}

/// Nobody is on it: why that may be. NOT_FOUND if the machine has no such CPU.
Result<std::string> describe_unused(const store::Database& database, std::uint32_t cpu, std::int64_t at_ms) {
  const auto machine = audit::machine_at(database, at_ms);
  if (!machine) return machine.error();
  if (!*machine) return fmt::format("nobody is on CPU {}", cpu);
  bool is_online = false;
  for (const audit::MachineRecord::Cpu& known : (*machine)->cpus) is_online = is_online || known.cpu == cpu;
  if (!is_online) return Error{Code::kNotFound, fmt::format("the machine has no CPU {}, or it is offline", cpu)};
  if ((*machine)->reserved.contains(cpu))
    return fmt::format("nobody is on CPU {}, which is reserved for the system", cpu);
  if ((*machine)->isolated.contains(cpu)) return fmt::format("nobody is on CPU {}, which the kernel isolates", cpu);
  if (!(*machine)->allowed.contains(cpu)) return fmt::format("topolet may not use CPU {}", cpu);
  return fmt::format("nobody is on CPU {}", cpu);
}

constexpr const char* kOnCpu =
    "SELECT namespace, pod, container, attempt, how, mode, cpus, withheld, since, reason, decision "
    "FROM on_cpu(?1, ?2) ORDER BY namespace, pod, container, attempt";

/// The containers on a CPU, and how each was seen last: those that do not run there though they should, and those that
/// do though they should not.
constexpr const char* kOnCpuNow = R"sql(
SELECT o.namespace, o.pod, o.container, o.attempt,
       CASE WHEN o.how = 'runs' AND coalesce(p.seen_on, '') <> '' AND NOT cpus_overlap(p.seen_on, ?1 || '')
            THEN 'should run, is seen on ' || p.seen_on ELSE o.how END AS how,
       CASE o.mode WHEN 'exclusive' THEN coalesce(p.mode, o.mode) ELSE o.mode END AS mode,
       o.cpus, o.withheld, o.since, o.reason, o.decision
FROM on_cpu(?1, ?2) o LEFT JOIN current_placements p USING (decision)
UNION ALL
SELECT namespace, pod, container, attempt, 'is seen here, should be on ' || cpus, mode, cpus, withheld, since, reason,
       decision
FROM current_placements
WHERE cpus_overlap(seen_on, ?1 || '') AND NOT cpus_overlap(cpus, ?1 || '') AND NOT cpus_overlap(withheld, ?1 || '')
ORDER BY 1, 2, 3, 4)sql";

}  // namespace

void declare_cpu(Options& options) {
  declare_database(options);
  declare_format(options);
  options.add_options()(
      "at", boost::program_options::value<std::string>()->value_name("TIME")->default_value("now"),
      "When: 2026-01-31T12:00:00Z, '2026-01-31 12:00', 12:00, 'yesterday 12:00', or how long ago: 2h.");
}

Status show_cpu(const Invocation& invocation) {
  const auto cpu = parse_cpu(invocation.arguments[0]);
  if (!cpu) {
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}' is no CPU; name one by its number", invocation.arguments[0])};
  }
  const auto at = moment(invocation.text("at"));
  if (!at) return at.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  const auto rows = (*database)->table(invocation.text("at") == "now" ? kOnCpuNow : kOnCpu, std::int64_t{*cpu}, *at);
  if (!rows) return rows.error();
  if (!rows->rows.empty()) return (*database)->print({}, *rows);
  const auto unused = describe_unused((*database)->connection(), *cpu, *at);
  return unused ? (*database)->print(*unused, *rows) : unused.error();
}

}  // namespace topolet::cli
