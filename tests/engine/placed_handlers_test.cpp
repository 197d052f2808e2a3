#include "core/engine/converge/placed_handlers.hpp"

#include <gtest/gtest.h>

namespace topolet::engine {
namespace {

constexpr const char* kUid = "2a4c7d1e-0f3b-4c55-9d1a-7b1d8c2e9f00";
constexpr const char* kUidInSlice = "2a4c7d1e_0f3b_4c55_9d1a_7b1d8c2e9f00";

bool is_shared(const std::string& cgroup) {
  return runs_in_cgroup_of_pod({cgroup}, "c0ffee", {kUid, "main", 0, "5a5a5a"});
}

TEST(CgroupOfPod, IsNotAContainersOwn) {
  const std::string pod = std::string("/kubepods/burstable/pod") + kUid;
  const std::string slice = std::string("/kubepods.slice/kubepods-pod") + kUidInSlice + ".slice";
  for (const std::string& own : {pod + "/c0ffee", pod + "/c0ffee/init.scope", slice + "/cri-containerd-c0ffee.scope",
                                 slice + "/crio-c0ffee.scope/container", std::string("/docker-c0ffee.scope")}) {
    EXPECT_FALSE(is_shared(own)) << own;
  }
}

TEST(CgroupOfPod, IsWhereASandboxOrAVirtualMachineRunsWhatIsInIt) {
  const std::string pod = std::string("/kubepods/burstable/pod") + kUid;
  const std::string slice = std::string("/kubepods.slice/kubepods-pod") + kUidInSlice + ".slice";
  for (const std::string& shared : {pod, pod + "/5a5a5a", slice, slice + "/cri-containerd-5a5a5a.scope",
                                    slice + "/kata_5a5a5a", std::string("/kata_overhead/5a5a5a")}) {
    EXPECT_TRUE(is_shared(shared)) << shared;
  }
}

TEST(CgroupOfPod, IsNoneThatSaysNothing) {
  for (const std::string& unknown :
       {std::string(), std::string("/system.slice/containerd.service"), std::string("/kubepods"),
        std::string("/kubepods/podother/abc"), std::string("/kubepods/pod") + kUid + "/custom"}) {
    EXPECT_FALSE(is_shared(unknown)) << unknown;
  }
  EXPECT_FALSE(runs_in_cgroup_of_pod({"/pod"}, "c1", {"", "main", 0, ""})) << "the pod is not known";
  EXPECT_FALSE(runs_in_cgroup_of_pod({}, "c1", {kUid, "main", 0, "5a5a5a"}));
}

/// cgroup v1 moves the processes of a cgroup that has no CPU left to the one above it, in that hierarchy.
TEST(CgroupOfPod, IsNotWhereTheKernelHasPutAContainerWithoutCpus) {
  const std::string pod = std::string("/kubepods/pod") + kUid;
  EXPECT_FALSE(runs_in_cgroup_of_pod({pod, pod + "/c0ffee"}, "c0ffee", {kUid, "main", 0, "5a5a5a"}));
  EXPECT_TRUE(runs_in_cgroup_of_pod({pod, pod + "/5a5a5a"}, "c0ffee", {kUid, "main", 0, "5a5a5a"}));
}

TEST(PlacedHandlers, LoseTheDefaultOneOnlyWhenTwoContainersShowIt) {
  PlacedHandlers handlers({});
  handlers.note_without_cgroup("", "c1");
  handlers.note_without_cgroup("", "c1");
  EXPECT_EQ(handlers.obstacle(""), "");
  handlers.note_without_cgroup("", "c2");
  EXPECT_NE(handlers.obstacle(""), "");
}

TEST(PlacedHandlers, AreFewerOnceOneTurnsOutToHaveNoCgroups) {
  PlacedHandlers handlers({.foreign = {"kata*"}});
  EXPECT_EQ(handlers.obstacle("gvisor"), "");
  handlers.note_without_cgroup("gvisor", "c1");
  EXPECT_EQ(handlers.obstacle("gvisor"), "its containers run in no cgroups of their own");
  EXPECT_EQ(handlers.obstacle("runc"), "");
}

}  // namespace
}  // namespace topolet::engine
