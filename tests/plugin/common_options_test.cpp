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

TEST(CommonOptions, AreNoneOfAnotherPlugin) {
  EXPECT_EQ(common_options_of({.name = "other", .values = {{"full-pcpus-only", "true"}, {"scope", "pod"}}}),
            CommonOptions());
}

}  // namespace
}  // namespace topolet::plugin
