// Capability structs that are smaller than the host's, as a plugin writes them that knows fewer members.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>

#include "core/base/log.hpp"
#include "core/plugin/call/plugin_host.hpp"
#include "core/plugin/call/plugin_policy.hpp"

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Behind what such a plugin has written, the host must not read: there lies what would be refused.
struct Shortened {
  topolet_str names[1] = {TOPOLET_STR("name")};
  topolet_annotations annotations{
      offsetof(topolet_annotations, taking), 0, {names, 1}, {nullptr, TOPOLET_ANNOTATIONS_MAX_NAMES}};
  topolet_reads reads{offsetof(topolet_reads, annotations), 0, {names, 1}, {nullptr, TOPOLET_READS_MAX_PATTERNS}};
  topolet_instance instance{sizeof(topolet_instance), 0, this,
                            [](const topolet_instance* its, topolet_str id) -> const void* {
                              auto* own = static_cast<Shortened*>(its->context);
                              if (topolet_str_is(id, TOPOLET_ANNOTATIONS_ID)) return &own->annotations;
                              return topolet_str_is(id, TOPOLET_READS_ID) ? &own->reads : nullptr;
                            },
                            [](const topolet_instance*) {}};

  Result<std::shared_ptr<PluginPolicy>> wrap() const {
    return PluginPolicy::wrap("short", std::make_unique<PluginHost>("short", make_silent_log(), nullptr), &instance);
  }
};

TEST(CapabilityStructs, AreUsedAsFarAsTheyGo) {
  const Shortened plugin;
  const auto policy = plugin.wrap();
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_THAT(*(*policy)->annotations(), ElementsAre("name"));
  EXPECT_THAT((*policy)->taking_annotations(), IsEmpty());
  EXPECT_THAT((*policy)->names_read().env, ElementsAre("name"));
  EXPECT_THAT((*policy)->names_read().annotations, IsEmpty());
}

TEST(CapabilityStructs, AreRefusedWhereTheyEndBeforeWhatTheirFirstReleaseHad) {
  Shortened plugin;
  plugin.reads.struct_size = offsetof(topolet_reads, env);
  const auto policy = plugin.wrap();
  ASSERT_FALSE(policy);
  EXPECT_THAT(policy.error().message, HasSubstr("its capability topolet.reads/1 has a struct_size of 8; it must be at "
                                                "least 24"));
}

}  // namespace
}  // namespace topolet::plugin
