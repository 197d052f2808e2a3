#include "plugins/gpu/nvml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

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

TEST(Nvml, LeavesNoMoreDescriptorsOpenHoweverOftenItIsAsked) {
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  query_nvml(TOPOLET_FAKE_NVML);
  const auto after_the_first = open_descriptors();
  for (int i = 0; i < 3; ++i) query_nvml(TOPOLET_FAKE_NVML);
  EXPECT_EQ(open_descriptors(), after_the_first);
}

TEST(Nvml, SaysWhatHelpsWhereTheDriverWasReplaced) {
  setenv("TOPOLET_FAKE_NVML_STATUS", "18", 1);
  const std::string replaced = query_nvml(TOPOLET_FAKE_NVML).error;
  setenv("TOPOLET_FAKE_NVML_STATUS", "9", 1);
  const std::string other = query_nvml(TOPOLET_FAKE_NVML).error;
  unsetenv("TOPOLET_FAKE_NVML_STATUS");
  EXPECT_THAT(replaced, testing::HasSubstr("NVML error 18; the driver was replaced"));
  EXPECT_THAT(replaced, testing::HasSubstr("`topolet restart`"));
  EXPECT_THAT(other, testing::EndsWith("NVML error 9"));
}

}  // namespace
}  // namespace topolet::gpu
