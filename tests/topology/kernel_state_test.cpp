#include "core/topology/kernel_state.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace topolet::topology {
namespace {

TEST(KernelState, IsReadFromSysfs) {
  const TempDir sysfs;
  sysfs.write("devices/system/cpu/online", "0-2,4\n");
  sysfs.write("devices/system/cpu/isolated", "4\n");
  const auto state = read_kernel_state(sysfs.path());
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->online, (CpuSet{0, 1, 2, 4}));
  EXPECT_EQ(state->isolated, CpuSet{4});
}

TEST(KernelState, MayBeMissing) {
  const TempDir sysfs;
  const auto state = read_kernel_state(sysfs.path());
  ASSERT_TRUE(state.has_value());
  EXPECT_FALSE(state->online.has_value());
  EXPECT_TRUE(state->isolated.empty());
}

TEST(KernelState, KnowsHowKernelsPrintAnEmptyMask) {
  for (const char* nothing : {"\n", "(null)\n", ""}) {
    const TempDir sysfs;
    sysfs.write("devices/system/cpu/isolated", nothing);
    const auto state = read_kernel_state(sysfs.path());
    ASSERT_TRUE(state.has_value()) << state.error().message;
    EXPECT_TRUE(state->isolated.empty());
  }
}

}  // namespace
}  // namespace topolet::topology
