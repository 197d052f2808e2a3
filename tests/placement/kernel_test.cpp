#include "core/placement/kernel.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/temp_dir.hpp"

namespace topolet {
namespace {

/// A /proc and a host root made in a temporary directory.
class KernelTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) { directory_.write(path, text); }
  Kernel kernel() const { return Kernel(directory_.path() / "proc", directory_.path() / "host"); }

  TempDir directory_;
};

TEST_F(KernelTest, ReadsTheUnifiedHierarchy) {
  put("proc/self/mountinfo", "24 1 0:21 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
  put("proc/77/cgroup", "0::/kubepods/pod1/abc\n");
  put("host/sys/fs/cgroup/kubepods/pod1/abc/cpuset.cpus.effective", "2-3,8\n");
  EXPECT_EQ(kernel().effective_cpus(77), (CpuSet{2, 3, 8}));
}

TEST_F(KernelTest, PrefersTheLegacyCpusetWhereBothAreMounted) {
  put("proc/self/mountinfo",
      "30 1 0:25 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "31 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  put("proc/77/cgroup", "5:cpuset:/pod1\n0::/elsewhere\n");
  put("host/sys/fs/cgroup/cpuset/pod1/cpuset.effective_cpus", "1\n");
  EXPECT_EQ(kernel().effective_cpus(77), CpuSet{1});
}

TEST_F(KernelTest, LooksBelowTheMountedPartOfTheTree) {
  put("proc/self/mountinfo", "24 1 0:21 /outer /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("proc/77/cgroup", "0::/outer/pod1\n");
  put("proc/78/cgroup", "0::/other/pod1\n");
  put("host/sys/fs/cgroup/pod1/cpuset.cpus.effective", "4\n");
  EXPECT_EQ(kernel().effective_cpus(77), CpuSet{4});
  EXPECT_EQ(kernel().effective_cpus(78), std::nullopt);
}

TEST_F(KernelTest, SaysNothingOfWhatIsNotThere) {
  put("proc/self/mountinfo", "24 1 0:21 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("proc/77/cgroup", "0::/gone\n");
  EXPECT_EQ(kernel().effective_cpus(77), std::nullopt);
  EXPECT_EQ(kernel().effective_cpus(78), std::nullopt);
}

TEST(Kernel, ReadsThisProcess) {
  const auto cpus = Kernel().effective_cpus(getpid());
  if (!cpus) GTEST_SKIP() << "this process is in no cpuset cgroup that can be seen from here";
  EXPECT_FALSE(cpus->empty());
}

}  // namespace
}  // namespace topolet
