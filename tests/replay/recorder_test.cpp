#include "core/replay/recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "core/base/log.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::replay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::uint64_t kLarge = std::uint64_t{1} << 30U;

class RecorderTest : public ::testing::Test {
 protected:
  Result<std::shared_ptr<Recorder>> open(std::size_t max_queued_bytes = Recorder::kMaxQueuedBytes) {
    return Recorder::open(
        {.file = file_, .max_bytes = kLarge, .version = "1.2", .clock = {}, .max_queued_bytes = max_queued_bytes},
        std::make_shared<const topology::Topology>(), log_);
  }
  static void add(Recorder& recorder, const std::string& value = "v") {
    recorder.add_state({.kind = StateAccess::Kind::kSet, .plugin = "p", .key = "k", .value = value});
  }
  std::string text() const { return directory_.read("record"); }

  const TempDir directory_;
  const std::filesystem::path file_ = directory_.path() / "record";
  std::ostringstream warnings_;  ///< may be read when there is no recorder
  const std::shared_ptr<Log> log_ =
      std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(warnings_));
};

TEST_F(RecorderTest, LetsNobodyElseReadTheFile) {
  directory_.write("record", "");
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  ASSERT_TRUE(open().has_value());
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_THAT(text(), StartsWith(R"({"op":"record","version":2,"topolet":"1.2","at":)"));
}

TEST_F(RecorderTest, LeavesWhatIsNoRecordAlone) {
  directory_.write("record", "precious");
  const auto recorder = open();
  ASSERT_FALSE(recorder.has_value());
  EXPECT_EQ(recorder.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(recorder.error().message, HasSubstr("is not a record; name another file"));
  EXPECT_EQ(text(), "precious");
  std::filesystem::remove(file_);
  std::filesystem::create_directory(file_);
  EXPECT_FALSE(open().has_value());
}

TEST_F(RecorderTest, EndsWithOneWarningOnAFullDisk) {
  {
    const auto opened = open();
    ASSERT_TRUE(opened.has_value());
    Recorder& recorder = **opened;
    const testing::FileSizeLimit full(4096);
    add(recorder, std::string(10000, 'x'));
    EXPECT_TRUE(testing::eventually([&] { return recorder.has_ended(); }));
    for (int i = 0; i < 100; ++i) add(recorder);
  }
  const std::string said = warnings_.str();
  EXPECT_THAT(said, HasSubstr("ends here: cannot write to"));
  EXPECT_EQ(said.find("ends here"), said.rfind("ends here"));
}

TEST_F(RecorderTest, EndsWhereMoreComesThanMayWait) {
  {
    const auto opened = open(4096);
    ASSERT_TRUE(opened.has_value());
    add(**opened, std::string(10000, 'x'));
    EXPECT_TRUE((*opened)->has_ended());
  }
  EXPECT_THAT(warnings_.str(), HasSubstr("more was to be recorded than could be written"));
}

TEST_F(RecorderTest, GoesOnBehindATornLine) {
  { ASSERT_TRUE(open().has_value()); }
  const std::string before = text();
  directory_.write("record", before + R"({"op":"dec)");
  { ASSERT_TRUE(open().has_value()); }
  EXPECT_THAT(text(), StartsWith(before + R"({"op":"dec)" + "\n" + R"({"op":"record",)"));
}

TEST_F(RecorderTest, WritesNothingOnceItIsFinished) {
  const auto recorder = open();
  ASSERT_TRUE(recorder.has_value());
  add(**recorder, "before");
  (*recorder)->finish();
  add(**recorder, "after");
  (*recorder)->finish();
  EXPECT_THAT(text(), HasSubstr("before"));
  EXPECT_THAT(text(), Not(HasSubstr("after")));
  EXPECT_FALSE((*recorder)->has_ended());
}

TEST_F(RecorderTest, TellsWhatPluginsKeepInTheOrderOfTheirCalls) {
  const auto state = std::make_shared<plugin::InMemoryPluginState>();
  ASSERT_TRUE(state->set("p", "old", "1").has_value());
  {
    const auto recorder = open();
    ASSERT_TRUE(recorder.has_value());
    const auto recorded = recorded_state(state, *recorder);
    EXPECT_EQ(*recorded->get("p", "old"), "1");
    ASSERT_TRUE(recorded->set("p", "new", "2").has_value());
    ASSERT_TRUE(recorded->remove("p", "old").has_value());
    EXPECT_EQ(*recorded->count("p"), 1U);
  }
  const std::string record = text();
  std::size_t at = 0;
  for (const char* line : {R"({"op":"state","plugin":"p","all":[["old","1"]])", R"("get":"old")",
                           R"("set":"new","value":"2")", R"("remove":"old")", R"("count":"")"}) {
    at = record.find(line, at);
    ASSERT_NE(at, std::string::npos) << line << " in\n" << record;
  }
}

TEST(RecordedNames, AreAllThatIsLeftOfTheEnvironmentAndAnnotations) {
  placement::Workload workload;
  workload.env = {{"NVIDIA_VISIBLE_DEVICES", "GPU-1"}, {"PASSWORD", "hush"}};
  workload.pod_annotations = {{"topolet.io/smt", "isolate"}, {"vendor/zone", "0"}, {"vendor/token", "hush"}};
  const placement::Workload shown = without_secrets(workload, {.env = {"NVIDIA_*"}, .annotations = {"vendor/zone"}});
  EXPECT_THAT(shown.env, ::testing::ElementsAre(std::pair("NVIDIA_VISIBLE_DEVICES", "GPU-1")));
  EXPECT_EQ(shown.pod_annotations.size(), 2U);
  EXPECT_EQ(shown.pod_annotations.count("vendor/token"), 0U);
  EXPECT_TRUE(without_secrets(workload, {}).env.empty());
}

}  // namespace
}  // namespace topolet::replay
