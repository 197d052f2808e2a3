#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/table.hpp"

namespace topolet::cli {
namespace {

using control::v1::HealResponse;

nlohmann::ordered_json json_of(const HealResponse& healed, bool is_dry) {
  nlohmann::ordered_json json = {
      {"dry_run", is_dry}, {"moved", nlohmann::ordered_json::array()}, {"left", nlohmann::ordered_json::array()}};
  for (const HealResponse::Moved& moved : healed.moved()) {
    json["moved"].push_back({{"container", moved.container()},
                             {"from_cpus", moved.from_cpus()},
                             {"to_cpus", moved.to_cpus()},
                             {"from_nodes", moved.from_nodes()},
                             {"to_nodes", moved.to_nodes()},
                             {"reason", moved.reason()}});
  }
  for (const HealResponse::Left& left : healed.left())
    json["left"].push_back({{"container", left.container()}, {"why", left.why()}});
  return json;
}

}  // namespace

void declare_heal(Options& options) {
  declare_location(options);
  declare_json(options);
  options.add_options()("dry-run", "Only say which containers would be moved, and why. Nothing is changed.");
}

Status heal(const Invocation& invocation) {
  const bool is_dry = invocation.has("dry-run");
  control::v1::HealRequest request;
  request.set_dry_run(is_dry);
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  const auto healed = daemon->call(&control::v1::Control::Stub::Heal, request);
  if (!healed) return healed.error();
  if (invocation.has("json")) {
    fmt::print("{}", to_text(json_of(*healed, is_dry)));
    return {};
  }
  if (healed->moved().empty()) {
    print_line(is_dry ? "no container would be moved" : "no container was moved");
  } else {
    Table table{{"container", "from", "to", is_dry ? "why it would move" : "why it was moved"}, {}};
    for (const HealResponse::Moved& moved : healed->moved())
      table.rows.push_back({moved.container(), moved.from_cpus(), moved.to_cpus(), moved.reason()});
    fmt::print("{}", table.format_text());
  }
  for (const HealResponse::Left& left : healed->left())
    print_line(fmt::format("{} stays: {}", left.container(), left.why()));
  return {};
}

}  // namespace topolet::cli
