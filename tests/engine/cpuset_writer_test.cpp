#include "core/engine/converge/cpuset_writer.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/engine/converge_test.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CpusetWriterTest : public ConvergeTest {
 protected:
  CpusetWriterTest() {
    begin({exclusive("a", {0})});
    runtime_.put("c-a", container_of("a"));
  }

  SharedStringMap::Map files() {
    const auto& unified = runtime_.container("c-a").resources.unified();
    return {unified.begin(), unified.end()};
  }
  WriteResult write(const CpuSet& cpus, const SharedStringMap& files = {}) {
    std::optional<WriteResult> result;
    cpusets_->write("c-a", {cpus, {}, std::nullopt, files},
                    [&result](const WriteResult& written) { result = written; });
    EXPECT_FALSE(result) << "it calls back on the loop";
    loop_.run();
    EXPECT_TRUE(result);
    return result.value_or(WriteResult());
  }
};

TEST_F(CpusetWriterTest, SeesInTheKernelThatItIsSo) {
  EXPECT_EQ(write({1}).kind, WriteResult::Kind::kVerified);
  EXPECT_EQ(cpusets_->kernel_cpus("c-a"), CpuSet{1});
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("UpdateContainerResources c-a 1", "ContainerStatus"));
  EXPECT_EQ(write({2}).kind, WriteResult::Kind::kVerified);
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("UpdateContainerResources c-a 2")) << "its process is known by now";
}

TEST_F(CpusetWriterTest, SaysWhereTheKernelHasItElsewhere) {
  runtime_.ignore_updates("c-a");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const WriteResult written = write({1});
    EXPECT_EQ(written.kind, WriteResult::Kind::kElsewhere);
    EXPECT_THAT(written.error.message, HasSubstr("on CPUs 0 instead of 1"));
  }
}

TEST_F(CpusetWriterTest, BelievesTheRuntimeWhereNoProcessIsToBeSeen) {
  runtime_.container("c-a").pid = 0;
  EXPECT_EQ(write({1}).kind, WriteResult::Kind::kVerified);
  EXPECT_EQ(cpusets_->kernel_cpus("c-a"), std::nullopt);
}

TEST_F(CpusetWriterTest, TellsOneThatWasNotStarted) {
  runtime_.put("c-a", container_of("a", operations::ContainerState::kCreated));
  EXPECT_EQ(write({1}).kind, WriteResult::Kind::kNotStarted);
}

TEST_F(CpusetWriterTest, TellsOneThatHasExitedThoughTheUpdateFailed) {
  runtime_.exit("c-a", 0);
  EXPECT_EQ(write({1}).kind, WriteResult::Kind::kExited);
}

TEST_F(CpusetWriterTest, TellsOneThatIsGone) {
  runtime_.remove("c-a");
  EXPECT_EQ(write({1}).kind, WriteResult::Kind::kGone);
}

TEST_F(CpusetWriterTest, TakesNothingForGoneThatTheRuntimeStillShows) {
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kNotFound, "no such sandbox", {}});
  EXPECT_EQ(write({1}).kind, WriteResult::Kind::kFailed);
}

TEST_F(CpusetWriterTest, FailsAsTheRuntimeSays) {
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kUnknown, "no space", {}});
  const WriteResult refused = write({1});
  EXPECT_EQ(refused.kind, WriteResult::Kind::kFailed);
  EXPECT_THAT(refused.error.message, HasSubstr("no space"));
  runtime_.fail("UpdateContainerResources", std::nullopt);
  runtime_.fail("ContainerStatus", cri::RuntimeResponse{Code::kUnavailable, "away", {}});
  cpusets_->forget("c-a");
  const WriteResult unseen = write({1});
  EXPECT_EQ(unseen.kind, WriteResult::Kind::kFailed);
  EXPECT_THAT(unseen.error.message, HasSubstr("away"));
}

TEST_F(CpusetWriterTest, SetsTheCpusWhereTheRuntimeRefusesFilesOfTheCgroup) {
  EXPECT_EQ(write({1}, {{"memory.high", "4096"}}).kind, WriteResult::Kind::kVerified);
  EXPECT_FALSE(cpusets_->refuses_files());
  runtime_.take_calls();
  runtime_.refuse_files();
  EXPECT_EQ(write({2}, {{"memory.high", "8192"}}).kind, WriteResult::Kind::kVerified);
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("UpdateContainerResources refused", "UpdateContainerResources c-a 2"));
  EXPECT_EQ(cpusets_->kernel_cpus("c-a"), CpuSet{2});
  EXPECT_TRUE(cpusets_->refuses_files());
  EXPECT_THAT(cpusets_->why_files_are_refused(), HasSubstr("memory.high"));
  EXPECT_EQ(write({3}, {{"memory.high", "4096"}}).kind, WriteResult::Kind::kVerified);
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("UpdateContainerResources c-a 3")) << "it is known by now";
}

TEST_F(CpusetWriterTest, ARefusalThatDoesNotLastSaysNothingOfFiles) {
  runtime_.fail_once("UpdateContainerResources",
                     {Code::kUnknown, "write /sys/fs/cgroup/unified/c-a/cpuset.cpus: device or resource busy", {}});
  EXPECT_EQ(write({1}, {{"memory.high", "4096"}}).kind, WriteResult::Kind::kVerified);
  EXPECT_FALSE(cpusets_->refuses_files());
  EXPECT_EQ(files().at("memory.high"), "4096");
}

TEST_F(CpusetWriterTest, FilesThatAreRefusedAgainOnCpusThatWereTakenAreRefused) {
  runtime_.refuse_files("exit status 1");
  EXPECT_EQ(write({1}, {{"memory.high", "4096"}}).kind, WriteResult::Kind::kVerified);
  EXPECT_TRUE(cpusets_->refuses_files());
  EXPECT_EQ(cpusets_->kernel_cpus("c-a"), CpuSet{1});
  EXPECT_THAT(cpusets_->why_files_are_refused(), HasSubstr("exit status 1"));
}

TEST_F(CpusetWriterTest, FilesAreTriedAgainAfterAnHour) {
  runtime_.refuse_files();
  write({1}, {{"memory.high", "4096"}});
  runtime_.refuse_files("");
  loop_.advance(kFilesRefusedFor - std::chrono::seconds(1));
  write({2}, {{"memory.high", "4096"}});
  EXPECT_TRUE(files().empty());
  loop_.advance(std::chrono::seconds(1));
  EXPECT_FALSE(cpusets_->refuses_files());
  EXPECT_EQ(cpusets_->why_files_are_refused(), "");
  write({1}, {{"memory.high", "4096"}});
  EXPECT_EQ(files().at("memory.high"), "4096");
}

/// In a cgroup that bears the container's id, with a memory.high.
class MemoryHighTest : public CpusetWriterTest {
 protected:
  MemoryHighTest() {
    kernel_.run_in(kProcess, "/kubepods/c-a", {{"memory.high", "max"}, {"cpuset.cpus.effective", "0"}});
    cpusets_->note_process("c-a", kProcess);
  }
  void SetUp() override {
    cpusets_->mark_memory_high("c-a", 4096);
    set("4096");
    if (!cpusets_->marked_memory_high("c-a")) GTEST_SKIP() << "this file system has no attributes";
  }
  void set(const std::string& value) { std::ofstream(kernel_.directory_of(kProcess) / "memory.high") << value << '\n'; }
  std::string high() const {
    std::string value;
    std::ifstream(kernel_.directory_of(kProcess) / "memory.high") >> value;
    return value;
  }

  static constexpr std::int64_t kProcess = 100 + 'a';
};

TEST_F(MemoryHighTest, IsKnownAsTopolets) {
  EXPECT_EQ(cpusets_->marked_memory_high("c-a"), 4096);
  cpusets_->mark_memory_high("c-a", 8192);
  EXPECT_EQ(cpusets_->marked_memory_high("c-a"), 4096) << "what is set is known before the next one is";
  set("8192");
  EXPECT_EQ(cpusets_->marked_memory_high("c-a"), 8192);
  cpusets_->mark_memory_high("c-a", 12288);
  set("4096");
  EXPECT_EQ(cpusets_->marked_memory_high("c-a"), std::nullopt) << "that was replaced";
}

TEST_F(MemoryHighTest, OfAnotherHandIsNotTopolets) {
  set("65536");
  EXPECT_EQ(cpusets_->marked_memory_high("c-a"), std::nullopt);
  set("max");
  EXPECT_EQ(cpusets_->marked_memory_high("c-a"), std::nullopt);
}

TEST_F(MemoryHighTest, IsLiftedInTheKernelWhereTheRuntimeRefusesFiles) {
  runtime_.refuse_files();
  write({1}, {{"memory.high", "8192"}});
  EXPECT_EQ(high(), "4096") << "it is not to be lifted";
  write({1}, {{"memory.high", "max"}});
  EXPECT_EQ(high(), "max");
  set("65536");
  write({1}, {{"memory.high", "max"}});
  EXPECT_EQ(high(), "65536") << "another hand has set that";
}

TEST_F(MemoryHighTest, IsLiftedAtOnceWhereThatIsRefused) {
  runtime_.refuse_files("exit status 1");
  write({1}, {{"memory.high", "max"}});
  EXPECT_EQ(high(), "max");
}

TEST_F(CpusetWriterTest, SaysWhyTheRuntimeRefusesMoreThanFiles) {
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kUnknown, "no space", {}});
  EXPECT_EQ(write({1}, {{"memory.high", "4096"}}).error.message, write({1}).error.message);
  EXPECT_FALSE(cpusets_->refuses_files());
}

TEST_F(CpusetWriterTest, AsksForSandboxesAfterContainers) {
  bool is_reported = false;
  cpusets_->list([&](const auto& sandboxes, const auto& containers) {
    is_reported = true;
    EXPECT_TRUE(sandboxes.has_value());
    ASSERT_TRUE(containers.has_value());
    EXPECT_EQ(containers->size(), 1U);
  });
  loop_.run();
  EXPECT_TRUE(is_reported);
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("ListContainers", "ListPodSandbox"));
}

}  // namespace
}  // namespace topolet::engine
