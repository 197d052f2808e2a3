#include "core/engine/converge/cpuset_writer.hpp"

#include <gmock/gmock.h>

#include "tests/engine/converging.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CpusetWriterTest : public Converging {
 protected:
  CpusetWriterTest() {
    begin({exclusive("a", {0})});
    runtime_.put("c-a", container_of("a"));
  }

  Written write(const CpuSet& cpus) {
    std::optional<Written> told;
    cpusets_->write("c-a", {cpus, {}}, [&told](const Written& written) { told = written; });
    EXPECT_FALSE(told) << "it calls back on the loop";
    loop_.run();
    EXPECT_TRUE(told);
    return told.value_or(Written());
  }
};

TEST_F(CpusetWriterTest, SeesInTheKernelThatItIsSo) {
  EXPECT_EQ(write({1}).kind, Written::Kind::kRuns);
  EXPECT_EQ(cpusets_->kernel_cpus("c-a"), CpuSet{1});
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("UpdateContainerResources c-a 1", "ContainerStatus"));
  EXPECT_EQ(write({2}).kind, Written::Kind::kRuns);
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("UpdateContainerResources c-a 2")) << "its process is known by now";
}

TEST_F(CpusetWriterTest, FailsWhereTheKernelHasItElsewhere) {
  runtime_.container("c-a").ignores_updates = true;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Written written = write({1});
    EXPECT_EQ(written.kind, Written::Kind::kFailed);
    EXPECT_THAT(written.error.message, HasSubstr("on CPUs 0 instead of 1"));
  }
}

TEST_F(CpusetWriterTest, BelievesTheRuntimeWhereNoProcessIsToBeSeen) {
  runtime_.container("c-a").pid = 0;
  EXPECT_EQ(write({1}).kind, Written::Kind::kRuns);
  EXPECT_EQ(cpusets_->kernel_cpus("c-a"), std::nullopt);
}

TEST_F(CpusetWriterTest, TellsOneThatWasNotStarted) {
  runtime_.put("c-a", container_of("a", ContainerState::kCreated));
  EXPECT_EQ(write({1}).kind, Written::Kind::kNotRun);
}

TEST_F(CpusetWriterTest, TellsOneThatHasExitedThoughTheUpdateFailed) {
  runtime_.exit("c-a", 0);
  EXPECT_EQ(write({1}).kind, Written::Kind::kExited);
}

TEST_F(CpusetWriterTest, TellsOneThatIsGone) {
  runtime_.remove("c-a");
  EXPECT_EQ(write({1}).kind, Written::Kind::kGone);
}

TEST_F(CpusetWriterTest, TakesNothingForGoneThatTheRuntimeStillShows) {
  runtime_.fail("UpdateContainerResources", Answer{Code::kNotFound, "no such sandbox", {}});
  EXPECT_EQ(write({1}).kind, Written::Kind::kFailed);
}

TEST_F(CpusetWriterTest, FailsAsTheRuntimeSays) {
  runtime_.fail("UpdateContainerResources", Answer{Code::kUnknown, "no space", {}});
  const Written refused = write({1});
  EXPECT_EQ(refused.kind, Written::Kind::kFailed);
  EXPECT_THAT(refused.error.message, HasSubstr("no space"));
  runtime_.fail("UpdateContainerResources", std::nullopt);
  runtime_.fail("ContainerStatus", Answer{Code::kUnavailable, "away", {}});
  cpusets_->forget("c-a");
  const Written unseen = write({1});
  EXPECT_EQ(unseen.kind, Written::Kind::kFailed);
  EXPECT_THAT(unseen.error.message, HasSubstr("away"));
}

TEST_F(CpusetWriterTest, AsksForSandboxesAfterContainers) {
  bool is_told = false;
  cpusets_->list([&](const auto& sandboxes, const auto& containers) {
    is_told = true;
    EXPECT_TRUE(sandboxes.ok());
    ASSERT_TRUE(containers.ok());
    EXPECT_EQ(containers->size(), 1U);
  });
  loop_.run();
  EXPECT_TRUE(is_told);
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("ListContainers", "ListPodSandbox"));
}

}  // namespace
}  // namespace topolet::engine
