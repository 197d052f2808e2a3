#include <array>

#include "plugins/foreign-zone/policy.hpp"

namespace {

namespace sdk = topolet::sdk;

constexpr std::array<topolet_str, 2> kZone = {{TOPOLET_STR("prefer"), TOPOLET_STR("require")}};

constexpr std::array<topolet_option, 1> kOptions = {
    {sdk::choice_option("zone", "prefer", kZone,
                        "What to do if the nodes that koord-scheduler or crane-scheduler has chosen for a pod have no "
                        "room: use others, or deny the container.")}};

class ForeignZonePlugin : public topolet::foreign_zone::Policy {
 public:
  explicit ForeignZonePlugin(const sdk::Options& options) : Policy({.requires_zone = options["zone"] == "require"}) {}
};

}  // namespace

TOPOLET_PLUGIN(ForeignZonePlugin, "foreign-zone", TOPOLET_FOREIGN_ZONE_VERSION, kOptions);
