#include "core/engine/converge/process_cgroups.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/support/temp_dir.hpp"

namespace topolet::engine {
namespace {

constexpr char kUnifiedMount[] = "24 1 0:21 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr char kBothMounts[] =
    "30 1 0:25 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "31 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

/// A /proc and a host root made in a temporary directory.
class KernelTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) { directory_.write(path, text); }

  void put_process(int pid, const std::string& cgroup, char state = 'S') {
    const std::string process = "proc/" + std::to_string(pid);
    put(process + "/cgroup", cgroup);
    put(process + "/stat", std::to_string(pid) + " (sh) " + state + " 1 77 77 0 -1 4194560\n");
  }

  ProcessCgroups kernel() const { return ProcessCgroups(directory_.path() / "proc", directory_.path() / "host"); }

  TempDir directory_;
};

TEST_F(KernelTest, ReadsTheUnifiedHierarchy) {
  put("proc/self/mountinfo", kUnifiedMount);
  put_process(77, "0::/kubepods/pod1/abc\n");
  put("host/sys/fs/cgroup/kubepods/pod1/abc/cpuset.cpus.effective", "2-3,8\n");
  EXPECT_EQ(kernel().effective_cpus(77), (CpuSet{2, 3, 8}));
}

TEST_F(KernelTest, PrefersTheLegacyCpusetWhereBothAreMounted) {
  put("proc/self/mountinfo", kBothMounts);
  put_process(77, "5:cpuset:/pod1\n0::/elsewhere\n");
  put("host/sys/fs/cgroup/cpuset/pod1/cpuset.effective_cpus", "1\n");
  EXPECT_EQ(kernel().effective_cpus(77), CpuSet{1});
}

TEST_F(KernelTest, FindsTheHierarchyThatHasQuotas) {
  EXPECT_EQ(kernel().quota_hierarchy(), std::nullopt);
  put("proc/self/mountinfo", kUnifiedMount);
  EXPECT_EQ(kernel().quota_hierarchy(), directory_.path() / "host/sys/fs/cgroup");
  put("proc/self/mountinfo",
      std::string(kBothMounts) + "32 1 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  EXPECT_EQ(kernel().quota_hierarchy(), directory_.path() / "host/sys/fs/cgroup/cpu,cpuacct");
}

TEST_F(KernelTest, FindsWhereTheUnifiedHierarchyCountsWhatAContainerUses) {
  put("proc/self/mountinfo", kUnifiedMount);
  put_process(77, "0::/kubepods/pod1/cri-abc.scope/inner\n");
  const auto own = directory_.path() / "host/sys/fs/cgroup/kubepods/pod1/cri-abc.scope";
  const auto found = kernel().load_directories(77, "abc");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cpu, own);
  EXPECT_EQ(found->memory, own);
  EXPECT_EQ(found->unified, own);
  EXPECT_FALSE(kernel().load_directories(77, "xyz")) << "it is in no cgroup of that container";
  EXPECT_FALSE(kernel().load_directories(78, "abc"));
}

TEST_F(KernelTest, FindsWhereTheLegacyHierarchiesCountWhatAContainerUses) {
  put("proc/self/mountinfo",
      std::string(kBothMounts) +
          "32 1 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n33 1 0:28 / /sys/fs/cgroup/cpuacct rw - cgroup "
          "cgroup rw,cpuacct\n34 1 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  put_process(77, "3:cpu:/pod1/abc\n4:cpuacct:/pod1/abc\n5:memory:/\n0::/\n");
  const auto found = kernel().load_directories(77, "abc");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cpu, directory_.path() / "host/sys/fs/cgroup/cpu/pod1/abc");
  EXPECT_EQ(found->cpuacct, directory_.path() / "host/sys/fs/cgroup/cpuacct/pod1/abc");
  EXPECT_EQ(found->memory, "") << "it is in no cgroup of its own there";
  EXPECT_EQ(found->unified, "");
}

TEST_F(KernelTest, ReadsTheMemoryOfEachNode) {
  put("proc/self/mountinfo", kUnifiedMount);
  put_process(77, "0::/kubepods/pod1/abc/below\n");
  put("host/sys/fs/cgroup/kubepods/pod1/abc/memory.numa_stat",
      "anon N0=8192 N1=4096\nfile N0=1 N1=0\nkernel_stack N0=64 N1=64\nfile_mapped N0=1 N1=0\n");
  EXPECT_EQ(kernel().memory_of(77, "abc"), (ProcessCgroups::MemoryByNode{{0, 8193}, {1, 4096}}));
  EXPECT_EQ(kernel().memory_of(77, "other"), std::nullopt) << "it is not in a cgroup of that name";
  EXPECT_EQ(kernel().memory_of(78, "abc"), std::nullopt) << "there is no such process";
}

TEST_F(KernelTest, ReadsTheMemoryOfEachNodeInPagesWithTheLegacyHierarchy) {
  put("proc/self/mountinfo", "32 1 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  put_process(77, "5:memory:/pod1/abc\n");
  const std::string file = "host/sys/fs/cgroup/memory/pod1/abc/memory.numa_stat";
  put(file, "total=1 N0=1 N1=0\nfile=0 N0=0 N1=0\nhierarchical_total=5 N0=2 N1=3\nhierarchical_file=0 N0=0 N1=0\n");
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  EXPECT_EQ(kernel().memory_of(77, "abc"), (ProcessCgroups::MemoryByNode{{0, 2 * page}, {1, 3 * page}}));
  put(file, "");
  EXPECT_EQ(kernel().memory_of(77, "abc"), std::nullopt) << "that is not none";
}

TEST_F(KernelTest, LooksBelowTheMountedPartOfTheTree) {
  put("proc/self/mountinfo", "24 1 0:21 /outer /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put_process(77, "0::/outer/pod1\n");
  put_process(78, "0::/other/pod1\n");
  put("host/sys/fs/cgroup/pod1/cpuset.cpus.effective", "4\n");
  EXPECT_EQ(kernel().effective_cpus(77), CpuSet{4});
  EXPECT_EQ(kernel().effective_cpus(78), std::nullopt);
}

constexpr char kLegacyMounts[] =
    "30 1 0:25 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "31 1 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 1 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "33 1 0:28 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n";

TEST_F(KernelTest, ReadsResourcesOfTheLegacyHierarchies) {
  put("proc/self/mountinfo", kLegacyMounts);
  const std::string cgroup = "/kubepods/burstable/pod1/abc";
  put_process(77, "7:cpu,cpuacct:" + cgroup + "\n6:memory:" + cgroup + "\n5:cpuset:" + cgroup +
                      "\n4:hugetlb:" + cgroup + "\n1:name=systemd:/\n");
  put("proc/77/oom_score_adj", "984\n");
  put("host/sys/fs/cgroup/cpu,cpuacct" + cgroup + "/cpu.shares", "1536\n");
  put("host/sys/fs/cgroup/cpu,cpuacct" + cgroup + "/cpu.cfs_quota_us", "-1\n");
  put("host/sys/fs/cgroup/cpu,cpuacct" + cgroup + "/cpu.cfs_period_us", "100000\n");
  put("host/sys/fs/cgroup/memory" + cgroup + "/memory.limit_in_bytes", "9223372036854771712\n");
  put("host/sys/fs/cgroup/cpuset" + cgroup + "/cpuset.mems", "0-1\n");
  put("host/sys/fs/cgroup/hugetlb" + cgroup + "/hugetlb.2MB.limit_in_bytes", "4194304\n");
  put("host/sys/fs/cgroup/hugetlb" + cgroup + "/hugetlb.1GB.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(kernel().resources_of(77, "abc"), (operations::ToldResources{.qos = placement::Qos::kBurstable,
                                                                         .cpu_period_us = 100000,
                                                                         .cpu_quota_us = -1,
                                                                         .cpu_shares = 1536,
                                                                         .cpu_weight = {},
                                                                         .memory_limit_bytes = 0,
                                                                         .oom_score_adj = 984,
                                                                         .hugepage_limit_bytes = {{{"2MB", 4194304}}},
                                                                         .mems = NodeSet{0, 1}}));
}

TEST_F(KernelTest, ReadsResourcesOfTheUnifiedHierarchy) {
  put("proc/self/mountinfo", kUnifiedMount);
  const std::string cgroup = "/kubepods.slice/kubepods-pod1.slice/docker-abc.scope";
  put_process(77, "0::" + cgroup + "/its-own\n");
  put("proc/77/oom_score_adj", "-997\n");
  put("host/sys/fs/cgroup" + cgroup + "/cpu.weight", "79\n");
  put("host/sys/fs/cgroup" + cgroup + "/cpu.max", "200000 100000\n");
  put("host/sys/fs/cgroup" + cgroup + "/memory.max", "1073741824\n");
  put("host/sys/fs/cgroup" + cgroup + "/cpuset.mems", "\n");
  put("host/sys/fs/cgroup" + cgroup + "/its-own/cpu.weight", "1\n");
  EXPECT_EQ(kernel().resources_of(77, "abc"), (operations::ToldResources{.qos = placement::Qos::kGuaranteed,
                                                                         .cpu_period_us = 100000,
                                                                         .cpu_quota_us = 200000,
                                                                         .cpu_shares = {},
                                                                         .cpu_weight = 79,
                                                                         .memory_limit_bytes = 1073741824,
                                                                         .oom_score_adj = -997,
                                                                         .hugepage_limit_bytes = {},
                                                                         .mems = NodeSet()}));
}

TEST_F(KernelTest, KnowsTheClassByTheCgroupOfEveryDriverAndRuntime) {
  const std::vector<std::pair<std::string, placement::Qos>> cases = {
      {"/kubepods/burstable/poduid/crio-abc", placement::Qos::kBurstable},
      {"/kubepods/besteffort/poduid/abc", placement::Qos::kBestEffort},
      {"/kubepods/poduid/abc", placement::Qos::kGuaranteed},
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poduid.slice/crio-abc.scope/container",
       placement::Qos::kBurstable},
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-poduid.slice/docker-abc.scope",
       placement::Qos::kBestEffort},
      {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-poduid.slice/cri-containerd-abc.scope",
       placement::Qos::kGuaranteed},
  };
  put("proc/self/mountinfo", kUnifiedMount);
  for (const auto& [cgroup, qos] : cases) {
    put_process(77, "0::" + cgroup + "\n");
    EXPECT_EQ(kernel().resources_of(77, "abc").qos, qos) << cgroup;
  }
}

TEST_F(KernelTest, TakesNoLimitsFromACgroupThatIsNotTheContainers) {
  put("proc/self/mountinfo", kUnifiedMount);
  put_process(77, "0::/kubepods/pod1\n");
  put("host/sys/fs/cgroup/kubepods/pod1/cpu.max", "200000 100000\n");
  put("host/sys/fs/cgroup/kubepods/pod1/cpu.weight", "79\n");
  EXPECT_EQ(kernel().resources_of(77, "abc"), (operations::ToldResources{.qos = placement::Qos::kGuaranteed}));
  put_process(77, "0::/\n", 'Z');
  EXPECT_EQ(kernel().resources_of(77, "abc"), operations::ToldResources());
}

TEST_F(KernelTest, TakesNonsenseForNotTold) {
  put("proc/self/mountinfo", kUnifiedMount);
  put_process(77, "0::/abc\n");
  put("proc/77/oom_score_adj", "7x\n");
  put("host/sys/fs/cgroup/abc/cpu.weight", "\n");
  put("host/sys/fs/cgroup/abc/cpu.max", "lots\n");
  put("host/sys/fs/cgroup/abc/memory.max", "99999999999999999999999\n");
  EXPECT_EQ(kernel().resources_of(77, "abc"), operations::ToldResources());
}

/// cgroup v1; the container's cgroup was left without CPUs, and so the kernel has moved 77 and 78 to the pod's.
class DisplacedTest : public KernelTest {
 protected:
  void SetUp() override {
    put("proc/self/mountinfo", "30 1 0:25 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
    put_process(77, "9:name=systemd:/user\n5:cpuset:/pods/pod1\n4:memory:/pods/pod1/web\n");
    put_process(78, "5:cpuset:/pods/pod1\n4:memory:/pods/pod1/web/its-own\n");
    put_process(79, "5:cpuset:/pods/pod1\n4:memory:/pods/pod1/other\n");
    put(kCpuset + "pods/pod1/cgroup.procs", "77\n78\n79\n");
    put(kCpuset + "pods/pod1/web/cgroup.procs", "");
    put(kCpuset + "pods/pod1/web/cpuset.cpus", "2-3\n");
  }

  /// Moves processes back and returns their number.
  std::size_t bring_back() const {
    const Result<std::size_t> moved = kernel().bring_back(77);
    EXPECT_TRUE(moved.has_value());
    return moved ? *moved : 0;
  }

  const std::string kCpuset = "host/sys/fs/cgroup/cpuset/";
};

TEST_F(DisplacedTest, BringsTheProcessesOfTheContainerBack) {
  // A file takes what is written last, where the kernel takes each process.
  EXPECT_EQ(bring_back(), 6U) << "two, three times over, since a file moves nobody";
  EXPECT_EQ(directory_.read(kCpuset + "pods/pod1/web/cgroup.procs"), "78");
}

TEST_F(DisplacedTest, BringsThemBackToCgroupsOfTheirOwn) {
  put(kCpuset + "pods/pod1/web/its-own/cpuset.cpus", "3\n");
  EXPECT_GT(bring_back(), 0U);
  EXPECT_EQ(directory_.read(kCpuset + "pods/pod1/web/cgroup.procs"), "77");
  EXPECT_EQ(directory_.read(kCpuset + "pods/pod1/web/its-own/cgroup.procs"), "78");
}

TEST_F(DisplacedTest, LeavesThemWhereTheyAreWhileTheirCgroupHasNoCpu) {
  put(kCpuset + "pods/pod1/web/cpuset.cpus", "\n");
  EXPECT_EQ(bring_back(), 0U);
}

TEST_F(DisplacedTest, LeavesThoseAloneThatAreInTheirCgroup) {
  put_process(77, "5:cpuset:/pods/pod1/web\n4:memory:/pods/pod1/web\n");
  EXPECT_EQ(bring_back(), 0U);
  put_process(77, "5:cpuset:/elsewhere\n4:memory:/pods/pod1/web\n");
  EXPECT_EQ(bring_back(), 0U) << "nobody but the kernel puts it above its own";
}

TEST_F(KernelTest, SaysNothingOfWhatIsNotThere) {
  put("proc/self/mountinfo", kUnifiedMount);
  put_process(77, "0::/gone\n");
  EXPECT_EQ(kernel().effective_cpus(77), std::nullopt);
  EXPECT_EQ(kernel().effective_cpus(78), std::nullopt);
}

TEST_F(KernelTest, SaysNothingOfAProcessThatHasEnded) {
  put("proc/self/mountinfo", kUnifiedMount);
  put("host/sys/fs/cgroup/kubepods/pod1/abc/cpuset.cpus.effective", "0-7\n");
  for (const char state : {'Z', 'X'}) {
    put_process(77, "0::/kubepods/pod1/abc\n", state);
    EXPECT_EQ(kernel().effective_cpus(77), std::nullopt) << state;
  }
  put_process(77, "0::/kubepods/pod1/abc\n", 'R');
  EXPECT_EQ(kernel().effective_cpus(77), (CpuSet{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(KernelTest, TellsTheStateFromAnyName) {
  put("proc/self/mountinfo", kUnifiedMount);
  put("host/sys/fs/cgroup/pod1/cpuset.cpus.effective", "3\n");
  put_process(77, "0::/pod1\n");
  put("proc/77/stat", "77 (a) Z (\n) S 1 77 77 0 -1 4194560\n");
  EXPECT_EQ(kernel().effective_cpus(77), CpuSet{3});
  put("proc/77/stat", "77 (a) S (\n) Z 1 77 77 0 -1 4194560\n");
  EXPECT_EQ(kernel().effective_cpus(77), std::nullopt);
}

TEST_F(KernelTest, SaysNothingOfAProcessInTheRootCgroup) {
  put("proc/self/mountinfo", kUnifiedMount);
  put("host/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
  put_process(77, "0::/\n");
  EXPECT_EQ(kernel().effective_cpus(77), std::nullopt);
}

TEST_F(KernelTest, ALegacyProcessThatExitsShowsInTheRootAndCountsForNothing) {
  put("proc/self/mountinfo", kBothMounts);
  put("host/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-7\n");
  put("host/sys/fs/cgroup/unified/pod1/cpuset.cpus.effective", "0-7\n");
  put_process(77, "5:cpuset:/\n0::/pod1\n");
  EXPECT_EQ(kernel().effective_cpus(77), std::nullopt);
}

TEST(ProcessCgroups, ReadsThisProcess) {
  const auto cpus = ProcessCgroups().effective_cpus(getpid());
  if (!cpus) GTEST_SKIP() << "this process is in no cpuset cgroup that can be seen from here";
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0) << std::strerror(errno);
  CpuSet affinity;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) affinity.insert(cpu);
  }
  EXPECT_FALSE(affinity.empty());
  EXPECT_TRUE(affinity.is_subset_of(*cpus)) << affinity.to_string() << " of " << cpus->to_string();
}

}  // namespace
}  // namespace topolet::engine
