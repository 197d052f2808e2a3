#include "core/plugin/host/deprecated_capabilities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>
#include <string>

#include "core/base/log.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// What is logged when an instance of `lively` is made, by a host with this table.
std::string logged_at_load(const DeprecatedCapabilities& deprecated) {
  std::ostringstream lines;
  const auto log = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines));
  const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "lively");
  if (!library) return library.error().message;
  const auto policy =
      library->create({}, log, {.state = std::make_shared<InMemoryPluginState>(), .deprecated = &deprecated});
  return policy ? lines.str() : policy.error().message;
}

TEST(DeprecatedCapabilities, AreOneWarningAtLoadWithWhatToUseInstead) {
  const std::string logged = logged_at_load({{TOPOLET_EVENTS_ID, "topolet.events/2"},
                                             {TOPOLET_SCORE_ID, "topolet.score/2"},
                                             {TOPOLET_STATE_ID, "topolet.notes/1"}});
  EXPECT_THAT(logged,
              HasSubstr("plugin lively uses deprecated capabilities, which go on working: topolet.events/1 (use "
                        "topolet.events/2), topolet.state/1 (use topolet.notes/1)\n"));
  EXPECT_THAT(logged, HasSubstr("warning"));
  EXPECT_THAT(logged, Not(HasSubstr("score")));
}

TEST(DeprecatedCapabilities, AreNotMentionedToAPluginThatUsesNone) {
  EXPECT_THAT(logged_at_load({{TOPOLET_WAKE_ID, "topolet.wake/2"}}), IsEmpty());
}

TEST(DeprecatedCapabilities, AreNoneSoFar) { EXPECT_THAT(deprecated_capabilities(), IsEmpty()); }

}  // namespace
}  // namespace topolet::plugin
