#include "core/daemon/describe_plugins.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace topolet::daemon {
namespace {

using control::v1::Plugin;

void add_statistics(Plugin& plugin, const plugin::PluginStatistics& statistics) {
  plugin.set_state(Plugin::ACTIVE);
  if (!statistics.quarantine.empty()) {
    plugin.set_state(Plugin::QUARANTINED);
    plugin.set_reason(statistics.quarantine);
    if (statistics.trial_at) plugin.set_trial_at_ms(statistics.trial_at->count());
  }
  if (statistics.has_abandoned_call) {
    plugin.set_state(Plugin::STUCK);
    plugin.set_reason("restart needed: an abandoned call has not returned" +
                      (statistics.quarantine.empty() ? std::string() : "; " + statistics.quarantine));
  }
  plugin.set_calls(statistics.calls);
  plugin.set_p99_us(statistics.p99_us);
  plugin.set_late_ticks(statistics.late_ticks);
  Plugin::LostVotes& lost = *plugin.mutable_lost_votes();
  lost.set_late(statistics.lost.late);
  lost.set_failed(statistics.lost.failed);
  lost.set_declined(statistics.lost.declined);
  lost.set_not_asked(statistics.lost.not_asked);
  lost.set_out_of_time(statistics.lost.out_of_time);
}

void add_library(Plugin& plugin, const plugin::PluginLibrary& library, const config::PluginOptions& options) {
  plugin.set_version(library.version());
  plugin.set_path(library.path().string());
  plugin.set_abi_minor(library.abi_minor());
  plugin.set_abi_draft(library.abi_draft());
  plugin.set_vendor(library.vendor());
  plugin.set_url(library.url());
  plugin.set_description(library.description());
  for (const config::OptionSpec& declared : library.options()) {
    Plugin::Option& option = *plugin.add_options();
    std::vector<std::string> values;
    const auto [first, last] = options.values.equal_range(declared.key);
    for (auto value = first; value != last; ++value) values.push_back(value->second);
    option.set_name(declared.key);
    option.set_value(shown_values(declared, values));
    if (!declared.required) option.set_default_value(shown_values(declared, declared.defaults));
    option.set_help(declared.help);
  }
}

}  // namespace

void describe_plugins(const std::vector<plugin::PluginDescription>& plugins,
                      control::v1::ListPluginsResponse& response) {
  for (const plugin::PluginDescription& described : plugins) {
    Plugin& plugin = *response.add_plugins();
    plugin.set_id(described.options.name);
    if (described.library) add_library(plugin, *described.library, described.options);
    for (const std::string& capability : described.capabilities) plugin.add_capabilities(capability);
    plugin.set_weight(described.options.weight);
    plugin.set_on_failure(described.options.fail_closed ? "closed" : "open");
    plugin.set_required(described.options.required);
    add_statistics(plugin, described.statistics);
    if (described.stuck.empty()) continue;
    plugin.set_state(Plugin::STUCK);
    plugin.set_reason(described.stuck);
  }
}

}  // namespace topolet::daemon
