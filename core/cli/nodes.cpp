#include <fmt/format.h>

#include <boost/program_options.hpp>

#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

/// For people, in GiB and CPUs.
constexpr const char* kForPeople = R"sql(
SELECT node, cpus, exclusive, withheld, reserved, pool, isolated AS "free isolated",
       largest_exclusive AS "exclusive possible", printf('%.2f', shared_request_milli / 1000.0) AS "shared requests",
       containers, CASE memory_bytes WHEN 0 THEN '' ELSE printf('%.1f GiB', memory_bytes / 1073741824.0) END AS memory,
       printf('%.1f GiB', memory_request_bytes / 1073741824.0) AS "memory requests"
FROM node_usage_at(?1, ?2) ORDER BY node)sql";

constexpr const char* kForPrograms = R"sql(
SELECT node, cpus, exclusive, withheld, reserved, pool, isolated, largest_exclusive, shared_request_milli, containers,
       memory_bytes, memory_request_bytes
FROM node_usage_at(?1, ?2) ORDER BY node)sql";

}  // namespace

void declare_nodes(Options& options) {
  declare_database(options);
  declare_format(options);
  options.add_options()("at", boost::program_options::value<std::string>()->value_name("TIME")->default_value("now"),
                        "When: as for `topolet cpu`.");
}

Status show_nodes(const Invocation& invocation) {
  const auto at = moment(invocation.text("at"));
  if (!at) return at.error();
  const auto format = format_of(invocation);
  if (!format) return format.error();
  const auto config = configuration(invocation);
  if (!config) return config.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_history(); !ready) return ready;
  return (*database)->print("the database does not tell what machine this is; topoletd records it when it starts",
                            *format == Format::kTable ? kForPeople : kForPrograms, *at,
                            std::int64_t{config->placement.rules.min_shared_cpus});
}

}  // namespace topolet::cli
