#include "core/plugin/host/common_options.hpp"

#include <gtest/gtest.h>

namespace topolet::plugin {
namespace {

using placement::CommonOptions;

TEST(CommonOptions, AreThoseOfNumaThatConcernAll) {
  config::PluginOptions numa{.name = "numa",
                             .values = {{"full-pcpus-only", "false"},
                                        {"scope", "container"},
                                        {"distribute-cpus-across-cores", "false"},
                                        {"policy", "restricted"}}};
  const auto set = [&numa](const char* name, const char* value) { numa.values.find(name)->second = value; };
  EXPECT_EQ(common_options_of(numa), CommonOptions());
  set("full-pcpus-only", "true");
  EXPECT_EQ(common_options_of(numa), CommonOptions{.whole_cores = true});
  set("full-pcpus-only", "false");
  set("scope", "pod");
  EXPECT_EQ(common_options_of(numa), CommonOptions{.pod_scope = true});
  set("distribute-cpus-across-cores", "true");
  EXPECT_EQ(common_options_of(numa), (CommonOptions{.pod_scope = true, .spread_cores = true}));
}

TEST(CommonOptions, SayHowFarBestEffortGivesWay) {
  config::PluginOptions load{
      .name = "load",
      .values = {{"besteffort-percent", "65"}, {"pressure-percent", "25"}, {"besteffort-memory", "off"}}};
  using Share = placement::BestEffortShare;
  EXPECT_EQ(besteffort_share_of(load), (Share{.cpus = 65, .pressure = 25, .memory = std::nullopt}));
  load.values = {{"besteffort-percent", "0"}, {"pressure-percent", "0"}, {"besteffort-memory", "40"}};
  EXPECT_EQ(besteffort_share_of(load), (Share{.cpus = std::nullopt, .pressure = std::nullopt, .memory = 40}));
  load.name = "other";
  EXPECT_EQ(besteffort_share_of(load), Share());
}

TEST(CommonOptions, LastAsLongAsTheirPluginIsAsked) {
  PluginVote vote;
  vote.name = "load";
  vote.besteffort.memory = 40;
  EXPECT_EQ(besteffort_share_of({vote}, {}), placement::BestEffortShare()) << "it was not started";
}

TEST(CommonOptions, AreNoneOfAnotherPlugin) {
  EXPECT_EQ(common_options_of({.name = "other", .values = {{"full-pcpus-only", "true"}, {"scope", "pod"}}}),
            CommonOptions());
}

}  // namespace
}  // namespace topolet::plugin
