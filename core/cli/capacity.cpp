#include "core/cli/capacity.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/audit/time_text.hpp"
#include "core/base/clock.hpp"
#include "core/base/rfc3339.hpp"
#include "core/base/text.hpp"
#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/table.hpp"
#include "core/engine/state/reported_capacity.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;
using control::v1::SetCapacityRequest;
using control::v1::SetCapacityResponse;

std::string utc_text(std::int64_t at_ms) { return rfc3339(std::chrono::milliseconds(at_ms)); }

void declare_capacity_change(Options& options) {
  declare_location(options);
  declare_json(options);
  options.add_options()("node", po::value<int>()->value_name("NODE"), "The NUMA node: its number.")(
      "source", po::value<std::string>()->value_name("TEXT")->default_value("operator"),
      "Who says so: the audit keeps it.");
}

Result<std::uint32_t> node_of(const Invocation& invocation, const char* command) {
  if (!invocation.has("node")) {
    return Error{
        Code::kInvalidArgument,
        fmt::format("--node is missing: say which NUMA node; `topolet capacity {} --help` explains it", command)};
  }
  const auto node = number_of(invocation, "node", 0);
  if (!node) return node.error();
  return static_cast<std::uint32_t>(*node);
}

Result<std::int64_t> milli_of(const Invocation& invocation) {
  if (!invocation.has("milli")) {
    return Error{Code::kInvalidArgument,
                 "--milli is missing: say how much of the node's CPUs can be had, in thousandths of a CPU"};
  }
  const auto milli = invocation.value<std::int64_t>("milli");
  if (milli >= 0) return milli;
  return Error{Code::kInvalidArgument, fmt::format("--milli must be 0 or more, not {}", milli)};
}

Result<std::int64_t> told_duration_of(const Invocation& invocation) {
  if (!invocation.has("for")) {
    return Error{Code::kInvalidArgument, "--for is missing: say for how long, as in --for 10m"};
  }
  const auto duration = audit::parse_duration(invocation.text("for"));
  if (!duration) return Error{Code::kInvalidArgument, "--for: " + duration.error().message};
  constexpr std::int64_t kLongest = std::chrono::milliseconds(engine::kLongestReport).count();
  if (*duration > 0 && *duration <= kLongest) return *duration;
  return Error{Code::kInvalidArgument,
               fmt::format("--for must be more than 0 and at most {} days, not {}; tell it again while it lasts",
                           engine::kLongestReport.count() / 24, invocation.text("for"))};
}

Result<SetCapacityResponse> change_capacity(const Invocation& invocation, SetCapacityRequest request) {
  request.set_source(invocation.text("source"));
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  return daemon->call(&control::v1::Control::Stub::SetCapacity, request);
}

nlohmann::ordered_json to_json(const control::v1::Capacity& capacity) {
  nlohmann::ordered_json json = {{"node", capacity.node()},
                                 {"milli", capacity.milli()},
                                 {"nominal_milli", capacity.nominal_milli()},
                                 {"until", rfc3339_ms(std::chrono::milliseconds(capacity.until_ms()))},
                                 {"source", capacity.source()},
                                 {"below_since", nullptr},
                                 {"missing_cpus", capacity.missing_cpus()}};
  if (capacity.below_since_ms() != 0)
    json["below_since"] = rfc3339_ms(std::chrono::milliseconds(capacity.below_since_ms()));
  return json;
}

}  // namespace

std::string describe(const control::v1::Capacity& capacity) {
  const bool is_measured = capacity.source() == engine::kMeasuredSource;
  std::string text = fmt::format(
      "{} of {} milli-CPUs until {} ({})", capacity.milli(), capacity.nominal_milli(), utc_text(capacity.until_ms()),
      is_measured ? "measured: a hypervisor takes the rest" : "told by " + capacity.source());
  if (capacity.missing_cpus() > 0)
    text += fmt::format("; {} fewer can be had for exclusive use", counted(capacity.missing_cpus(), "CPU"));
  return text;
}

nlohmann::ordered_json capacities_json(const control::v1::StatusResponse& status) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const control::v1::Capacity& capacity : status.capacities()) all.push_back(to_json(capacity));
  return all;
}

void declare_capacity_show(Options& options) {
  declare_location(options);
  declare_json(options);
}

Status show_capacity(const Invocation& invocation) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  const auto status = daemon->call(&control::v1::Control::Stub::Status, control::v1::StatusRequest());
  if (!status) return status.error();
  if (invocation.has("json")) {
    fmt::print("{}", to_text(capacities_json(*status)));
    return {};
  }
  if (status->capacities().empty()) {
    print_line("nothing is told of any NUMA node: the nominal capacity of each counts");
    return {};
  }
  Table table{{"node", "milli", "nominal", "until", "source", "below 90% since", "CPUs fewer"}, {}};
  for (const control::v1::Capacity& capacity : status->capacities()) {
    const std::int64_t below = capacity.below_since_ms();
    table.rows.push_back({capacity.node(), capacity.milli(), capacity.nominal_milli(), utc_text(capacity.until_ms()),
                          capacity.source(), below == 0 ? std::string() : utc_text(below), capacity.missing_cpus()});
  }
  fmt::print("{}", table.format_text());
  return {};
}

void declare_capacity_set(Options& options) {
  declare_capacity_change(options);
  options.add_options()(
      "milli", po::value<std::int64_t>()->value_name("NUMBER"),
      "How much of the node's CPUs can be had, in thousandths of a CPU. More than the node has counts "
      "as all of it.")("for", po::value<std::string>()->value_name("DURATION"),
                       "For how long: 90s, 15m, 2h or 7d. Then the nominal capacity counts again.");
}

Status set_capacity(const Invocation& invocation) {
  const auto node = node_of(invocation, "set");
  if (!node) return node.error();
  const auto milli = milli_of(invocation);
  if (!milli) return milli.error();
  const auto duration = told_duration_of(invocation);
  if (!duration) return duration.error();
  SetCapacityRequest request;
  request.set_node(*node);
  request.set_milli(*milli);
  request.set_until_ms(Clock().wall().count() + *duration);
  const auto set = change_capacity(invocation, request);
  if (!set) return set.error();
  if (invocation.has("json")) {
    fmt::print("{}", to_text({{"node", *node},
                              {"milli", set->milli()},
                              {"nominal_milli", set->nominal_milli()},
                              {"until", rfc3339_ms(std::chrono::milliseconds(request.until_ms()))}}));
    return {};
  }
  const std::string cut = set->milli() == *milli ? "" : fmt::format(", as node {} has no more", *node);
  print_line(fmt::format("node {}: {} of {} milli-CPUs until {}{}", *node, set->milli(), set->nominal_milli(),
                         utc_text(request.until_ms()), cut));
  return {};
}

void declare_capacity_clear(Options& options) { declare_capacity_change(options); }

Status clear_capacity(const Invocation& invocation) {
  const auto node = node_of(invocation, "clear");
  if (!node) return node.error();
  SetCapacityRequest request;
  request.set_node(*node);
  const auto cleared = change_capacity(invocation, request);
  if (!cleared) return cleared.error();
  if (invocation.has("json")) {
    fmt::print("{}", to_text({{"node", *node}, {"was_told", cleared->was_told()}}));
    return {};
  }
  print_line(cleared->was_told() ? fmt::format("node {}: its nominal capacity counts again", *node)
                                 : fmt::format("node {}: nothing was told of it", *node));
  return {};
}

}  // namespace topolet::cli
