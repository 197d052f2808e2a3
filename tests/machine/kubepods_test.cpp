#include "core/machine/kubepods.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/support/temp_dir.hpp"

namespace topolet::machine {
namespace {

class KubepodsLayout : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(KubepodsLayout, IsFound) {
  const TempDir cgroups;
  cgroups.write("cpuset.cpus.effective", "0-63\n");
  cgroups.write("cpuset/cpuset.effective_cpus", "0-63\n");
  cgroups.write("system.slice/cpuset.cpus.effective", "0-1\n");
  cgroups.write(GetParam().second, "2-7\n");
  const auto cpus = kubepods_cpus(cgroups.path());
  ASSERT_TRUE(cpus.has_value()) << cpus.error().message;
  ASSERT_TRUE(cpus->has_value());
  EXPECT_EQ(**cpus, CpuSet::range(2, 7));
}

INSTANTIATE_TEST_SUITE_P(
    All, KubepodsLayout,
    testing::Values(std::pair("V2Systemd", "kubepods.slice/cpuset.cpus.effective"),
                    std::pair("V2Cgroupfs", "kubepods/cpuset.cpus.effective"),
                    std::pair("V1Systemd", "cpuset/kubepods.slice/cpuset.effective_cpus"),
                    std::pair("V1Cgroupfs", "cpuset/kubepods/cpuset.effective_cpus"),
                    std::pair("V2SystemdCgroupRoot", "kubelet.slice/kubelet-kubepods.slice/cpuset.cpus.effective"),
                    std::pair("V2CgroupfsCgroupRoot", "kubelet/kubepods/cpuset.cpus.effective"),
                    std::pair("V1CgroupfsCgroupRoot", "cpuset/kubelet/kubepods/cpuset.effective_cpus")),
    [](const auto& test) { return std::string(test.param.first); });

TEST(Kubepods, AbsentIsNoLimit) {
  const TempDir cgroups;
  cgroups.write("cpuset.cpus.effective", "0-63\n");
  cgroups.write("kubepods.slice/memory.max", "max\n");
  const auto cpus = kubepods_cpus(cgroups.path());
  ASSERT_TRUE(cpus.has_value());
  EXPECT_FALSE(cpus->has_value());
  EXPECT_FALSE(kubepods_cpus("/no/such/directory")->has_value());
}

TEST(Kubepods, NotYetFilledInIsNoLimit) {
  const TempDir cgroups;
  cgroups.write("cpuset/kubepods/cpuset.effective_cpus", "\n");
  EXPECT_FALSE(kubepods_cpus(cgroups.path())->has_value());
}

TEST(Kubepods, ThatHoldNoListAreAnError) {
  const TempDir cgroups;
  cgroups.write("kubepods/cpuset.cpus.effective", "all\n");
  EXPECT_THAT(kubepods_cpus(cgroups.path()).error().message,
              testing::HasSubstr("kubepods/cpuset.cpus.effective: cannot read 'all'"));
}

}  // namespace
}  // namespace topolet::machine
