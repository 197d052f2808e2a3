// Which CPUs may be used, and which configurations suit a machine.
#include "core/machine/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/topology/discover.hpp"

namespace topolet::machine {
namespace {

using ::testing::HasSubstr;

class MachineTest : public testing::Test {
 protected:
  /// Eight CPUs on two nodes, some of them offline.
  std::shared_ptr<const topology::Topology> machine(const CpuSet& offline = {}) {
    return *topology::discover({.synthetic = "numa:2 core:4 pu:1", .offline = offline});
  }
  std::string refused(const CpuSet& offline = {}, const std::optional<CpuSet>& pods = std::nullopt) {
    const Status fits = check_machine(*machine(offline), options_, pods);
    return fits ? "" : fits.error().message;
  }

  config::PlacementOptions options_;
};

TEST_F(MachineTest, RefusesCpusToReserveThatItDoesNotHave) {
  options_.reserved_cpus = CpuSet{7};
  EXPECT_EQ(refused(), "");
  options_.reserved_cpus = CpuSet{7, 8, 9};
  EXPECT_THAT(refused(), HasSubstr("CPUs that this machine does not have: 8-9; it has 0-7"));
}

TEST_F(MachineTest, RefusesAConfigurationThatLeavesNoSharedCpu) {
  options_.reserved_cpus = CpuSet::range(0, 7);
  EXPECT_THAT(refused(), HasSubstr("no CPU is left for the shared pool"));
  options_.reserved_cpus = CpuSet{0, 1};
  options_.allowed_cpus = CpuSet{0, 1};
  EXPECT_THAT(refused(), HasSubstr("no CPU is left for the shared pool"));
  options_.allowed_cpus = CpuSet{8};
  EXPECT_THAT(refused(), HasSubstr("no CPU is left to place containers on"));
  options_.allowed_cpus = CpuSet{0, 1, 2};
  EXPECT_EQ(refused(), "");
  EXPECT_THAT(refused({}, CpuSet{5}), HasSubstr("the pods' cgroup may use 5, placement.allowed-cpus is 0-2"));
}

TEST_F(MachineTest, StartsWhileCpusAreOffline) {
  options_.reserved_cpus = CpuSet{0, 1};
  options_.allowed_cpus = CpuSet{0, 1, 2};
  EXPECT_EQ(refused(CpuSet{0}), "") << "a reserved one";
  EXPECT_EQ(refused(CpuSet{2}), "") << "the last shared one";
  EXPECT_EQ(refused(CpuSet{2}, CpuSet{0, 1, 3}), "") << "which the kernel has taken out of the pods' cgroup";
  const engine::Engine::Machine now = make_machine(machine(CpuSet{0, 2}), options_, std::nullopt);
  EXPECT_EQ(now.cpus.allowed, CpuSet{1});
  EXPECT_EQ(now.cpus.reserved, CpuSet{1});
}

TEST_F(MachineTest, MayHaveNoCpuLeftForPods) {
  options_.allowed_cpus = CpuSet{2};
  const engine::Engine::Machine now = make_machine(machine(CpuSet{2}), options_, std::nullopt);
  EXPECT_TRUE(now.cpus.allowed.empty());
  EXPECT_TRUE(now.candidates.empty());
}

}  // namespace
}  // namespace topolet::machine
