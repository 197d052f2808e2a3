#include "core/engine/converge/pod_cgroups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace topolet::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kPodUid = "2a4c7d1e-0f3b";

class PodCgroupsTest : public ::testing::Test {
 protected:
  fs::path make(const std::string& cgroup, const std::string& cpus) {
    const fs::path directory = root_ / cgroup;
    fs::create_directories(directory);
    std::ofstream(directory / "cpuset.cpus") << cpus << '\n';
    return directory;
  }
  static std::string cpus_of(const fs::path& cgroup) {
    std::ifstream in(cgroup / "cpuset.cpus");
    std::string line;
    std::getline(in, line);
    return line;
  }

  TempDir directory_;
  const fs::path root_ = directory_.path();
  const PodCgroups unified_{CpusetHierarchy{root_, false}};
  const PodCgroups v1_{CpusetHierarchy{root_, true}};
};

TEST_F(PodCgroupsTest, AreFoundWhereverTheKubeletHasItsPods) {
  make("kubepods/burstable/pod1234", "");
  const fs::path by_path = make(std::string("kubepods/burstable/pod") + kPodUid, "");
  EXPECT_EQ(unified_.find(kPodUid).value(), by_path);
  fs::remove_all(root_ / "kubepods");
  const fs::path in_slice = make(
      "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
      "kubelet-kubepods-besteffort-pod2a4c7d1e_0f3b.slice",
      "");
  EXPECT_EQ(unified_.find(kPodUid).value(), in_slice);
}

TEST_F(PodCgroupsTest, AreFoundInNodesThatRunInContainersAndNotInThoseOfOtherKubelets) {
  for (const char* path :
       {"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod2a4c7d1e_0f3b.slice",
        "kubepods/besteffort/pod2a4c7d1e-0f3b", "docker/0f1e/kubelet/kubepods/burstable/pod2a4c7d1e-0f3b",
        "system.slice/docker-0f1e.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
        "kubelet-kubepods-burstable-pod2a4c7d1e_0f3b.slice",
        "a/b/c/d/e/f/kubepods/pod2a4c7d1e-0f3b"}) {
    const fs::path pod = make(path, "");
    EXPECT_EQ(unified_.find(kPodUid).value(), pod);
    fs::remove_all(root_ / *fs::path(path).begin());
  }
  make("kubepods/podother/container/kubelet/kubepods/pod2a4c7d1e-0f3b", "");
  EXPECT_FALSE(unified_.find(kPodUid)) << "that is the pod of a kubelet in a pod";
}

TEST_F(PodCgroupsTest, AreToldThatTheyAreNotThere) {
  make("kubepods/pod2a4c7d1e-0f3b-longer", "");
  for (const char* uid : {kPodUid, "", "other"}) {
    const auto found = unified_.find(uid);
    ASSERT_FALSE(found.has_value()) << uid;
    EXPECT_EQ(found.error().code, Code::kNotFound);
  }
  EXPECT_THAT(PodCgroups(std::nullopt).find(kPodUid).error().message, HasSubstr("no cgroup hierarchy with cpusets"));
}

TEST_F(PodCgroupsTest, AreConfinedByTheirOwnFileAlone) {
  const fs::path pod = make("kubepods/pod1", "");
  const fs::path container = make("kubepods/pod1/vm", "0-7");
  const Status unknown = unified_.confine(pod, CpuSet::range(2, 5));
  ASSERT_FALSE(unknown) << "nobody knows whether it had an effect";
  EXPECT_THAT(unknown.error().message, HasSubstr("it cannot be read on which CPUs"));
  std::ofstream(pod / "cpuset.cpus.effective") << "2-5\n";
  EXPECT_TRUE(unified_.confine(pod, CpuSet::range(2, 5)).has_value());
  EXPECT_EQ(cpus_of(pod), "2-5");
  EXPECT_EQ(cpus_of(container), "0-7");
  EXPECT_TRUE(unified_.release(pod).has_value());
  EXPECT_EQ(cpus_of(pod), "");
}

TEST_F(PodCgroupsTest, OfCgroupV1AreConfinedWithAllBelow) {
  make("kubepods", "0-7");
  const fs::path pod = make("kubepods/pod1", "0-7");
  const fs::path container = make("kubepods/pod1/vm", "0-7");
  const fs::path nested = make("kubepods/pod1/vm/inner", "6");
  for (const CpuSet& cpus : {CpuSet::range(2, 5), CpuSet::range(4, 7)}) {
    EXPECT_TRUE(v1_.confine(pod, cpus).has_value());
    for (const fs::path& cgroup : {pod, container, nested}) EXPECT_EQ(cpus_of(cgroup), cpus.to_string()) << cgroup;
  }
  EXPECT_TRUE(v1_.release(pod).has_value());
  for (const fs::path& cgroup : {pod, container, nested}) EXPECT_EQ(cpus_of(cgroup), "0-7") << cgroup;
}

TEST_F(PodCgroupsTest, SayWhatCannotBeSet) {
  const auto gone = unified_.confine(root_ / "kubepods/pod1", CpuSet{1});
  ASSERT_FALSE(gone.has_value());
  EXPECT_THAT(gone.error().message, HasSubstr("cannot be written to"));
  const fs::path pod = make("kubepods/pod1", "");
  EXPECT_THAT(unified_.confine(pod, {}).error().message, HasSubstr("no shared CPU is left"));
  std::ofstream(pod / "cpuset.cpus.effective") << "0-7\n";
  EXPECT_THAT(unified_.confine(pod, CpuSet{1}).error().message, HasSubstr("run on CPUs 0-7 instead of 1"));
}

}  // namespace
}  // namespace topolet::engine
