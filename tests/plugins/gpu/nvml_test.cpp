#include "plugins/gpu/nvml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace topolet::gpu {
namespace {

TEST(Nvml, ListsGpusByIndexAndTheGpuOfEachMigDevice) {
  const NvmlDevices devices = query_nvml(TOPOLET_FAKE_NVML);
  EXPECT_EQ(devices.error, "");
  ASSERT_EQ(devices.gpus.size(), 2U);
  EXPECT_EQ(devices.gpus[0].address, "0000:41:00.0");
  EXPECT_EQ(devices.gpus[1].address, "0000:c1:00.0");
  EXPECT_EQ(devices.gpus[1].uuid, "GPU-b");
  EXPECT_EQ(devices.gpus[1].minor, 0U);
  EXPECT_EQ(devices.mig, (std::map<std::string, std::string>{{"MIG-slice", "0000:c1:00.0"}}));
}

TEST(Nvml, SaysWhyItIsOfNoUse) {
  EXPECT_EQ(query_nvml("").error, "option nvml-library is empty");
  EXPECT_EQ(query_nvml("libthere-is-none.so.1").error, "libthere-is-none.so.1 is not installed");
  const TempDir directory;
  const std::string broken = directory.write("libbroken.so", "no library").string();
  EXPECT_THAT(query_nvml(broken).error, testing::StartsWith(broken + " cannot be loaded: "));
  EXPECT_EQ(query_nvml("libc.so.6").error, "libc.so.6 lacks functions of NVML that drivers since 2018 have");
}

}  // namespace
}  // namespace topolet::gpu
