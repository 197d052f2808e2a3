// CPUs that go or come while the engine is down.
#include <gtest/gtest.h>

#include <string>

#include "tests/daemon/core_rig.hpp"

namespace topolet::daemon {
namespace {

using testing::CoreRig;

TEST(EngineHotplug, MovesContainersOffCpusThatWentOfflineWhileItWasDown) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  ASSERT_EQ(rig.runtime().row(own).cpus, "0");
  rig.stop();
  rig.offline = {0};
  rig.start();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(own).cpus == "1"; })) << rig.runtime().row(own).cpus;
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "2-3"; }));
  EXPECT_EQ(rig.held("own"), "1");
}

TEST(EngineHotplug, CountsWhoDoesNotHaveTheCpusItShould) {
  CoreRig rig;
  rig.run({.pod = "any"});
  rig.run({.pod = "own", .cpus = 3});
  EXPECT_EQ(rig.summary().squeezed, 0U);
  rig.stop();
  rig.offline = {2, 3};
  rig.start();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.summary().squeezed == 2; })) << rig.summary().squeezed;
  EXPECT_EQ(rig.summary().left_to_kernel, 1U) << "own keeps 0-1";
  rig.stop();
  rig.offline = {};
  rig.start();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.summary().squeezed == 0; })) << rig.summary().squeezed;
  EXPECT_EQ(rig.summary().left_to_kernel, 0U);
}

}  // namespace
}  // namespace topolet::daemon
