#include <array>
#include <string_view>

#include "plugins/numa/policy.hpp"

namespace {

using topolet::numa::Policy;
using topolet::numa::Strategy;

constexpr std::array<topolet_str, 2> kStrategies = {{TOPOLET_STR("packed"), TOPOLET_STR("spread")}};

constexpr std::array<topolet_option, 1> kOptions = {{
    {TOPOLET_STR("strategy"),
     TOPOLET_OPTION_CHOICE,
     0,
     TOPOLET_STR("packed"),
     {kStrategies.data(), kStrategies.size()},
     0,
     0,
     TOPOLET_STR("Between nodes that serve equally well: packed takes the fullest one, spread the emptiest.")},
}};

class NumaPlugin : public Policy {
 public:
  explicit NumaPlugin(const topolet::sdk::Options& options)
      : Policy({.strategy = options["strategy"] == "spread" ? Strategy::kSpread : Strategy::kPacked}) {}
};

}  // namespace

TOPOLET_PLUGIN(NumaPlugin, "numa", TOPOLET_NUMA_VERSION, kOptions);
