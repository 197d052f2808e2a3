#include "core/engine/converge/process_cgroups.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

TEST_F(KernelTest, LooksBelowTheMountedPartOfTheTree) {
  put("proc/self/mountinfo", "24 1 0:21 /outer /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put_process(77, "0::/outer/pod1\n");
  put_process(78, "0::/other/pod1\n");
  put("host/sys/fs/cgroup/pod1/cpuset.cpus.effective", "4\n");
  EXPECT_EQ(kernel().effective_cpus(77), CpuSet{4});
  EXPECT_EQ(kernel().effective_cpus(78), std::nullopt);
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
