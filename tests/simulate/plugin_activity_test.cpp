#include "core/simulate/plugin_activity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/log.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"

namespace topolet::simulate {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ActivityRecorder, NotesWhatPluginsLog) {
  ActivityRecorder recorder;
  recorder.log()->debug("spread: two of them");
  const PluginActivity noted = recorder.take();
  ASSERT_THAT(noted.log, SizeIs(1));
  EXPECT_EQ(noted.log[0].level, "debug");
  EXPECT_EQ(noted.log[0].line, "spread: two of them");
  EXPECT_THAT(recorder.take().log, IsEmpty());
}

TEST(ActivityRecorder, ShowsShortTextsOfTheStateOnly) {
  ActivityRecorder recorder;
  const auto state = recorder.watched(std::make_shared<plugin::InMemoryPluginState>());
  const std::string bytes("\0\1", 2);
  ASSERT_TRUE(state->set("spread", "text", std::string(64, 'x')));
  ASSERT_TRUE(state->set("spread", "long", std::string(65, 'x')));
  ASSERT_TRUE(state->set("spread", "bytes", bytes));
  ASSERT_TRUE(state->remove("spread", "long"));
  const std::vector<StateWrite> written = recorder.take().state;
  ASSERT_THAT(written, SizeIs(4));
  EXPECT_EQ(written[0].text, std::string(64, 'x'));
  EXPECT_EQ(written[1].bytes, 65U);
  EXPECT_EQ(written[1].text, std::nullopt);
  EXPECT_EQ(written[2].text, std::nullopt);
  EXPECT_EQ(written[3].bytes, std::nullopt);
  EXPECT_EQ(*state->get("spread", "bytes"), bytes);
}

TEST(ActivityRecorder, KeepsTheLastDecisionAboutAContainer) {
  ActivityRecorder recorder;
  recorder.add_decision({"pod", "main", 0, ""}, {{{"A", "1"}}, {}});
  recorder.add_decision({"pod", "other", 0, ""}, {{{"A", "2"}}, {}});
  recorder.add_decision({"pod", "main", 0, ""}, {});
  const std::vector<AddedByPlugins> added = recorder.take().added;
  ASSERT_THAT(added, SizeIs(1));
  EXPECT_EQ(added[0].key.name, "other");
}

}  // namespace
}  // namespace topolet::simulate
