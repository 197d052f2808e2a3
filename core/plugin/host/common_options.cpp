#include "core/plugin/host/common_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

namespace topolet::plugin {
namespace {

struct CommonOption {
  std::string_view plugin;
  std::string_view name;
  std::string_view value;  ///< with which it is in force
  bool placement::CommonOptions::*field;
};

/// How exclusive CPUs are handed out is decided by one policy, whose options have the kubelet's names, and concerns all
/// that choose CPUs. Each vote carries what its own section says of that, decide() puts it into the request, and every
/// policy finds it there as a flag. So no policy reads another's section, and nothing in the core depends on a flag.
constexpr std::array<CommonOption, 3> kCommonOptions = {{
    {"numa", "full-pcpus-only", "true", &placement::CommonOptions::whole_cores},
    {"numa", "scope", "pod", &placement::CommonOptions::pod_scope},
    {"numa", "distribute-cpus-across-cores", "true", &placement::CommonOptions::spread_cores},
}};

/// How much of the pool and of the memory BestEffort containers leave is a matter of the whole ledger, which no policy
/// changes: one says in its section how much, and the engine goes by it as long as that one is asked.
struct BestEffortOption {
  std::string_view plugin;
  std::string_view name;
  std::optional<std::uint32_t> placement::BestEffortShare::*field;
};
constexpr std::array<BestEffortOption, 3> kBestEffortOptions = {{
    {"load", "besteffort-percent", &placement::BestEffortShare::cpus},
    {"load", "pressure-percent", &placement::BestEffortShare::pressure},
    {"load", "besteffort-memory", &placement::BestEffortShare::memory},
}};

/// Nothing for 0, "off" and whatever else is not a number.
std::optional<std::uint32_t> percent_from(const std::string& text) {
  std::uint32_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  return percent == 0 ? std::nullopt : std::optional(percent);
}

bool is_asked(const PluginVote& vote, const std::vector<PluginStatistics>& known) {
  return vote.plugin != nullptr && std::none_of(known.begin(), known.end(), [&vote](const PluginStatistics& one) {
           return one.name == vote.name && !one.quarantine.empty();
         });
}

}  // namespace

placement::BestEffortShare besteffort_share_of(const config::PluginOptions& plugin) {
  placement::BestEffortShare share;
  for (const BestEffortOption& option : kBestEffortOptions) {
    const auto found = plugin.values.find(std::string(option.name));
    if (option.plugin == plugin.name && found != plugin.values.end()) share.*option.field = percent_from(found->second);
  }
  return share;
}

placement::BestEffortShare besteffort_share_of(const std::vector<PluginVote>& votes,
                                               const std::vector<PluginStatistics>& known) {
  for (const PluginVote& vote : votes) {
    if (vote.besteffort != placement::BestEffortShare() && is_asked(vote, known)) return vote.besteffort;
  }
  return {};
}

placement::CommonOptions common_options_of(const config::PluginOptions& plugin) {
  placement::CommonOptions common;
  for (const CommonOption& option : kCommonOptions) {
    if (option.plugin != plugin.name) continue;
    const auto found = plugin.values.find(std::string(option.name));
    common.*option.field = found != plugin.values.end() && found->second == option.value;
  }
  return common;
}

}  // namespace topolet::plugin
