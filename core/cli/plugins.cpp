#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/escape.hpp"
#include "core/base/rfc3339.hpp"
#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/table.hpp"
#include "core/plugin_checker/command.hpp"

namespace topolet::cli {
namespace {

using control::v1::ListPluginsResponse;
using control::v1::Plugin;
using nlohmann::ordered_json;

const char* state_of(const Plugin& plugin) {
  switch (plugin.state()) {
    case Plugin::ACTIVE:
      return "active";
    case Plugin::QUARANTINED:
      return "quarantined";
    case Plugin::STUCK:
      return "stuck";
    default:
      return "unknown";
  }
}

std::uint64_t total(const Plugin::LostVotes& lost) {
  return lost.late() + lost.failed() + lost.declined() + lost.not_asked() + lost.out_of_time();
}

std::string abi_of(const Plugin& plugin) {
  return plugin.abi_draft() > 0 ? fmt::format("0.9 draft {}", plugin.abi_draft())
                                : fmt::format("1.{}", plugin.abi_minor());
}

std::string reason_of(const Plugin& plugin) {
  if (plugin.trial_at_ms() == 0) return plugin.reason();
  return fmt::format("{}; from {} on it is tried again", plugin.reason(),
                     rfc3339_ms(std::chrono::milliseconds(plugin.trial_at_ms())));
}

/// "What it does (of VENDOR, URL)"; empty if the plugin says nothing of that.
std::string about_of(const Plugin& plugin) {
  std::string origin = plugin.vendor().empty() ? "" : "of " + plugin.vendor();
  if (!plugin.url().empty()) origin += (origin.empty() ? "" : ", ") + plugin.url();
  if (origin.empty()) return plugin.description();
  return plugin.description() + (plugin.description().empty() ? "" : " ") + "(" + origin + ")";
}

std::string format_text(const ListPluginsResponse& list) {
  Table table{{"plugin", "version", "abi", "weight", "state", "calls", "lost", "p99 µs", "capabilities"}, {}};
  for (const Plugin& plugin : list.plugins()) {
    table.rows.push_back({plugin.id(), plugin.version(), abi_of(plugin), plugin.weight(), state_of(plugin),
                          plugin.calls(), total(plugin.lost_votes()), plugin.p99_us(),
                          fmt::format("{}", fmt::join(plugin.capabilities(), " "))});
  }
  std::string text = table.format_text();
  for (const Plugin& plugin : list.plugins()) {
    const std::string about = about_of(plugin);
    if (!about.empty()) text += fmt::format("\n{}\n", escaped(plugin.id() + ": " + about));
  }
  for (const Plugin& plugin : list.plugins()) {
    if (!plugin.reason().empty()) text += fmt::format("\n{}\n", escaped(plugin.id() + ": " + reason_of(plugin)));
    const Plugin::LostVotes& lost = plugin.lost_votes();
    if (total(lost) > 0) {
      text += fmt::format("\n{} lost votes: {} late, {} failed, {} declined, {} not asked, {} out of time\n",
                          escaped(plugin.id()), lost.late(), lost.failed(), lost.declined(), lost.not_asked(),
                          lost.out_of_time());
    }
    if (plugin.late_ticks() > 0)
      text += fmt::format("\n{}: {} late ticks\n", escaped(plugin.id()), plugin.late_ticks());
  }
  Table options{{"option", "value", "default", "help"}, {}};
  for (const Plugin& plugin : list.plugins()) {
    for (const Plugin::Option& option : plugin.options()) {
      options.rows.push_back(
          {plugin.id() + "." + option.name(), option.value(), option.default_value(), option.help()});
    }
  }
  return options.rows.empty() ? text : text + "\n" + options.format_text();
}

ordered_json format_json(const ListPluginsResponse& list) {
  ordered_json all = ordered_json::array();
  for (const Plugin& plugin : list.plugins()) {
    ordered_json options = ordered_json::array();
    for (const Plugin::Option& option : plugin.options()) {
      options.push_back({{"name", option.name()},
                         {"value", option.value()},
                         {"default", option.default_value()},
                         {"help", option.help()}});
    }
    const Plugin::LostVotes& lost = plugin.lost_votes();
    all.push_back(
        {{"id", plugin.id()},
         {"version", plugin.version()},
         {"vendor", plugin.vendor()},
         {"url", plugin.url()},
         {"description", plugin.description()},
         {"path", plugin.path()},
         {"abi_minor", plugin.abi_minor()},
         {"abi_draft", plugin.abi_draft()},
         {"capabilities", std::vector<std::string>(plugin.capabilities().begin(), plugin.capabilities().end())},
         {"options", options},
         {"weight", plugin.weight()},
         {"on_failure", plugin.on_failure()},
         {"required", plugin.required()},
         {"state", state_of(plugin)},
         {"reason", plugin.reason()},
         {"trial_at_ms", plugin.trial_at_ms() == 0 ? ordered_json() : ordered_json(plugin.trial_at_ms())},
         {"calls", plugin.calls()},
         {"lost_votes",
          {{"late", lost.late()},
           {"failed", lost.failed()},
           {"declined", lost.declined()},
           {"not_asked", lost.not_asked()},
           {"out_of_time", lost.out_of_time()}}},
         {"late_ticks", plugin.late_ticks()},
         {"p99_us", plugin.p99_us()}});
  }
  return all;
}

}  // namespace

void declare_plugin_list(Options& options) {
  declare_location(options);
  declare_json(options);
}

Status list_plugins(const Invocation& invocation) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  const auto list = daemon->call(&control::v1::Control::Stub::ListPlugins, control::v1::ListPluginsRequest());
  if (!list) return list.error();
  if (invocation.has("json")) {
    fmt::print("{}", to_text(format_json(*list)));
  } else if (list->plugins().empty()) {
    fmt::print(
        "no plugin is enabled; to enable one, write `enable = NAME` into section [plugins] of topoletd's "
        "configuration\n");
  } else {
    fmt::print("{}", format_text(*list));
  }
  return {};
}

int check_plugin_file(const std::vector<std::string>& arguments) {
  return plugin_checker::check_command("topolet plugin check", arguments);
}

void declare_plugin_reset(Options& options) { declare_plugin_list(options); }

Status reset_plugin(const Invocation& invocation) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  control::v1::ResetPluginRequest ask;
  ask.set_id(invocation.arguments[0]);
  const auto done = daemon->call(&control::v1::Control::Stub::ResetPlugin, ask);
  if (!done) return done.error();
  if (!invocation.has("json")) print_line("plugin " + invocation.arguments[0] + " is asked again");
  return {};
}

}  // namespace topolet::cli
