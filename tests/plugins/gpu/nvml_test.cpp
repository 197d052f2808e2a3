#include "plugins/gpu/nvml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace topolet::gpu {
namespace {

TEST(Nvml, TellsGpusByIndexAndTheGpuOfAMigDevice) {
  const NvmlAnswer answer = ask_nvml(TOPOLET_FAKE_NVML);
  EXPECT_EQ(answer.fault, "");
  ASSERT_EQ(answer.gpus.size(), 2U);
  EXPECT_EQ(answer.gpus[0].address, "0000:41:00.0");
  EXPECT_EQ(answer.gpus[1].address, "0000:c1:00.0");
  EXPECT_EQ(answer.gpus[1].uuid, "GPU-b");
  EXPECT_EQ(answer.gpus[1].minor, 0U);
  EXPECT_EQ(answer.mig, (std::map<std::string, std::string>{{"MIG-slice", "0000:c1:00.0"}}));
}

TEST(Nvml, SaysWhatIsWrong) {
  EXPECT_EQ(ask_nvml("").fault, "option nvml-library is empty");
  EXPECT_EQ(ask_nvml("libthere-is-none.so.1").fault, "there is no libthere-is-none.so.1");
  const TempDir directory;
  const std::string broken = directory.write("libbroken.so", "no library").string();
  EXPECT_THAT(ask_nvml(broken).fault, testing::StartsWith(broken + " cannot be loaded: "));
  EXPECT_EQ(ask_nvml("libc.so.6").fault, "libc.so.6 is not of a version that is known here");
}

}  // namespace
}  // namespace topolet::gpu
