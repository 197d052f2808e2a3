#include "core/placement/kernel.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace topolet {
namespace {

namespace fs = std::filesystem;

/// A /proc and a host root made in a temporary directory.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "topolet-kernel-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  Kernel kernel() const { return Kernel(root_ / "proc", root_ / "host"); }

  fs::path root_;
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
