#include "core/engine/converge/nested_cpusets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "core/engine/converge/cpuset_files.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/pod_cgroups.hpp"
#include "core/engine/converge/process_cgroups.hpp"
#include "tests/engine/converge_test.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class NestedCpusetsTest : public ::testing::Test {
 protected:
  fs::path make(const std::string& cgroup, const CpuSet& cpus) {
    fs::create_directories(root_ / cgroup);
    EXPECT_TRUE(write_cpus(root_ / cgroup, cpus));
    return root_ / cgroup;
  }
  CpuSet cpus_of(const std::string& cgroup) const { return read_cpus(root_ / cgroup).value_or(CpuSet()); }

  TempDir directory_;
  const fs::path root_ = directory_.path();
};

TEST_F(NestedCpusetsTest, KeepWhatTheyHaveOfTheNewCpusOrGetThemAll) {
  const fs::path container = make("c", CpuSet::range(0, 7));
  make("c/docker", CpuSet::range(0, 7));
  make("c/docker/a", {0, 1, 4});
  make("c/docker/b", {0, 1});
  make("c/other", {6});
  EXPECT_EQ(nested_cpus(container), CpuSet::range(0, 7));
  EXPECT_TRUE(narrow_nested(container, {4, 5, 6}));
  EXPECT_EQ(cpus_of("c"), CpuSet::range(0, 7)) << "that is the runtime's to write";
  EXPECT_EQ(cpus_of("c/docker"), (CpuSet{4, 5, 6}));
  EXPECT_EQ(cpus_of("c/docker/a"), (CpuSet{4}));
  EXPECT_EQ(cpus_of("c/docker/b"), (CpuSet{4, 5, 6}));
  EXPECT_EQ(cpus_of("c/other"), (CpuSet{6}));
}

TEST_F(NestedCpusetsTest, FollowAContainerThatGetsMoreWhereTheyHadAllOfIt) {
  const fs::path container = make("c", CpuSet::range(0, 7));
  make("c/docker", {0, 1});
  make("c/docker/a", {0, 1});
  make("c/docker/b", {1});
  EXPECT_TRUE(widen_nested(container, {0, 1}, CpuSet::range(0, 7)));
  EXPECT_EQ(cpus_of("c/docker"), CpuSet::range(0, 7));
  EXPECT_EQ(cpus_of("c/docker/a"), CpuSet::range(0, 7));
  EXPECT_EQ(cpus_of("c/docker/b"), (CpuSet{1}));
}

TEST_F(NestedCpusetsTest, SayWhichOfThemCannotBeWritten) {
  const fs::path container = make("c", CpuSet::range(0, 3));
  make("c/a", {0});
  make("c/b", {1});
  fs::remove(root_ / "c/a/cpuset.cpus");
  fs::create_directory(root_ / "c/a/cpuset.cpus");  // it can be read by nobody, and so it is left alone
  EXPECT_TRUE(narrow_nested(container, {2}));
  EXPECT_EQ(cpus_of("c/b"), (CpuSet{2}));
  const Status none = narrow_nested(container, {5});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("has none of the CPUs 5"));
}

/// In front of a kernel tree of cgroup v1, in which the container has made a cgroup.
class WriterAroundNestedTest : public ConvergeTest {
 protected:
  WriterAroundNestedTest() {
    begin({exclusive("a", {0, 1})});
    ScriptedRuntime::Container container = container_of("a");
    container.pid = 77;
    runtime_.put("c-a", container);
    v1_.write("proc/self/mountinfo", "30 1 0:25 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
    v1_.write("proc/77/stat", "77 (sh) S 1 77 77 0 -1 4194560\n");
    v1_.write("proc/77/cgroup", "5:cpuset:/kubepods/pod1/c-a/init\n");
    for (const char* cgroup : {"", "/init", "/docker"}) {
      v1_.write(kOwn + cgroup + "/cpuset.cpus", "0-1\n");
      v1_.write(kOwn + cgroup + "/cpuset.effective_cpus", "0-1\n");
    }
    writer_ = std::make_unique<CpusetWriter>(
        CpusetWriter::Deps{loop_, client_, {}, ProcessCgroups(v1_.path() / "proc", v1_.path()), *log_});
    writer_->inspect("c-a", [](const auto&) {});
    loop_.run();
    runtime_.take_calls();
  }
  WriteResult write(const CpuSet& cpus) {
    WriteResult result;
    writer_->write("c-a", {cpus, {}}, [&result](const WriteResult& written) { result = written; });
    loop_.run();
    return result;
  }
  std::vector<std::string> updates() {
    std::vector<std::string> calls = runtime_.take_calls();
    std::erase_if(calls, [](const std::string& call) { return call.rfind("Update", 0) != 0; });
    return calls;
  }

  const std::string kOwn = "sys/fs/cgroup/cpuset/kubepods/pod1/c-a";
  TempDir v1_;
  std::unique_ptr<CpusetWriter> writer_;
};

TEST_F(WriterAroundNestedTest, MakesThemLeaveFirst) {
  EXPECT_EQ(writer_->pinned_by_nested("c-a"), (CpuSet{0, 1}));
  EXPECT_EQ(writer_->container_cpus("c-a"), (CpuSet{0, 1}));
  write({1});
  EXPECT_EQ(read_cpus(v1_.path() / kOwn / "docker"), (CpuSet{1}));
  EXPECT_THAT(updates(), ::testing::ElementsAre("UpdateContainerResources c-a 1"));
}

TEST_F(WriterAroundNestedTest, GivesTheContainerWhereTheyAreToGoBeforeItLeaves) {
  write({4, 5});
  EXPECT_THAT(updates(),
              ::testing::ElementsAre("UpdateContainerResources c-a 0-1,4-5", "UpdateContainerResources c-a 4-5"));
}

TEST_F(WriterAroundNestedTest, SaysWhatIsInTheWayWhereTheRuntimeRefuses) {
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kUnknown, "device or resource busy", {}});
  const WriteResult refused = write({4, 5});
  EXPECT_EQ(refused.kind, WriteResult::Kind::kFailed);
  EXPECT_THAT(refused.error.message, HasSubstr("device or resource busy"));
  EXPECT_THAT(refused.error.message, HasSubstr("has none of the CPUs 4-5")) << "the container was not given them";
}

/// A cgroup of this machine's own, with others in it; taken away again.
class RealCpusetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto hierarchy = ProcessCgroups().hierarchy();
    if (!hierarchy || !hierarchy->is_v1) GTEST_SKIP() << "this machine has no cpusets of cgroup v1";
    const CpuSet all = read_cpus(hierarchy->directory).value_or(CpuSet());
    if (all.size() < 2) GTEST_SKIP() << "this machine has one CPU";
    for (const std::uint32_t cpu : all) (cpu == *all.begin() ? first_ : others_) |= CpuSet{cpu};
    own_ = hierarchy->directory / ("topolet-test-" + std::to_string(getpid()));
    std::error_code error;
    if (!fs::create_directory(own_, error)) GTEST_SKIP() << "no cgroup can be made here: " << error.message();
    both_ = first_ | CpuSet{*others_.begin()};
    ASSERT_TRUE(write_cpus(own_, both_));
  }
  void TearDown() override {
    std::error_code gone;
    for (auto cgroup = made_.rbegin(); cgroup != made_.rend(); ++cgroup) fs::remove(*cgroup, gone);
    if (!own_.empty()) fs::remove(own_, gone);
  }
  fs::path make(const std::string& name, const CpuSet& cpus) {
    made_.push_back(own_ / name);
    fs::create_directory(made_.back());
    EXPECT_TRUE(write_cpus(made_.back(), cpus));
    return made_.back();
  }

  fs::path own_;
  std::vector<fs::path> made_;
  CpuSet first_;
  CpuSet others_;
  CpuSet both_;
};

TEST_F(RealCpusetTest, KeepsACgroupOnItsCpusUntilThoseBelowHaveLeft) {
  const fs::path docker = make("docker", both_);
  const fs::path inner = make("docker/inner", first_);
  const CpuSet second = both_ - first_;
  const Status refused = write_cpus(own_, second);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("busy"));
  const Status narrowed = narrow_nested(own_, second);
  ASSERT_TRUE(narrowed) << narrowed.error().message;
  EXPECT_EQ(read_cpus(docker), second);
  EXPECT_EQ(read_cpus(inner), second);
  EXPECT_TRUE(write_cpus(own_, second)) << "as the runtime does";
  EXPECT_TRUE(write_cpus(own_, both_));
  EXPECT_TRUE(widen_nested(own_, second, both_));
  EXPECT_EQ(read_cpus(docker), both_);
}

TEST_F(RealCpusetTest, ConfinesAPodAndGivesItsCpusBack) {
  const fs::path burstable = make("kubepods-burstable.slice", both_);
  const fs::path pod = make("kubepods-burstable.slice/kubepods-burstable-podab_c.slice", both_);
  const fs::path inner = make("kubepods-burstable.slice/kubepods-burstable-podab_c.slice/vm", first_);
  const PodCgroups cgroups(CpusetHierarchy{own_, true});
  ASSERT_EQ(cgroups.find("ab-c").value(), pod);
  for (const CpuSet& cpus : {both_ - first_, first_}) {
    const Status confined = cgroups.confine(pod, cpus);
    ASSERT_TRUE(confined) << confined.error().message;
    EXPECT_EQ(read_cpu_list(pod / "cpuset.effective_cpus"), cpus);
    EXPECT_EQ(read_cpu_list(inner / "cpuset.effective_cpus"), cpus);
  }
  ASSERT_TRUE(cgroups.release(pod));
  EXPECT_EQ(read_cpus(pod), both_);
}

}  // namespace
}  // namespace topolet::engine
