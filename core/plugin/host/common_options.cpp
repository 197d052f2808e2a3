#include "core/plugin/host/common_options.hpp"

#include <array>
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

}  // namespace

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
