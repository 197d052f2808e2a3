// Containers without devices on machines with GPUs that nobody uses yet, and what is known of who uses them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using testing::HasSubstr;

class RoomBesideGpus : public GpuDecisions {
 protected:
  /// Two nodes of eight CPUs, with one GPU each.
  SimulatedNode node(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> options = {"--placement.min-shared-cpus=0", "--placement.crash-hold=0"};
    options.insert(options.end(), more.begin(), more.end());
    SimulatedNode made = machine("pack:2 numa:1 core:8 pu:1", options);
    for (const int number : {0, 1}) {
      made.apply(fmt::format(R"({{"op":"device","path":"/dev/vacc{0}","kind":"vacc","nodes":"{0}"}})", number));
    }
    return made;
  }
};

TEST_F(RoomBesideGpus, IsLeftWhereAGpuIsUnused) {
  SimulatedNode made = node();
  EXPECT_EQ(create(made, "trainer", devices("/dev/vacc0"), 2000).cpus, CpuSet::range(0, 1));
  const OperationResult placed = create(made, "web", "", 2000);
  EXPECT_EQ(placed.cpus, CpuSet::range(2, 3)) << placed.reason;
  EXPECT_THAT(placed.reason, HasSubstr("gpu: node 0: leaves the CPUs that unused GPUs will want"));
}

TEST_F(RoomBesideGpus, IsKnownAlsoForDevicesThatOnlyTheEnvironmentNamesAndAfterARestart) {
  SimulatedNode made = node({"--numa.strategy=spread"});
  create(made, "trainer", env("VA_VISIBLE_DEVICES", "1"), 4000);
  made.apply(R"({"op":"restart"})");
  EXPECT_EQ(create(made, "web", "", 2000).cpus, CpuSet::range(12, 13)) << "the other GPU is unused";
}

TEST_F(RoomBesideGpus, IsLeftBesideGpusThatAreOnlyWatched) {
  const std::vector<std::string> all = {devices("/dev/vacc0\",\"/dev/vacc1"), env("VA_VISIBLE_DEVICES", "all"),
                                        env("VA_VISIBLE_DEVICES", "0-1")};
  for (const std::string& exporter : all) {
    SimulatedNode made = machine("pack:4 numa:1 core:8 pu:1");
    for (const int number : {0, 1})
      made.apply(fmt::format(R"({{"op":"device","path":"/dev/vacc{0}","kind":"vacc","nodes":"{0}"}})", number));
    const OperationResult watching = create(made, "exporter", exporter, 100);
    EXPECT_THAT(watching.reason, HasSubstr("gpu: it has all 2 GPUs and requests less than one CPU"));
    for (const char* const pod : {"a", "b"})
      EXPECT_TRUE(create(made, pod, "", 6000).cpus.is_subset_of(CpuSet::range(16, 31))) << exporter;
    made.apply(R"({"op":"restart"})");
    EXPECT_EQ(create(made, "trainer", devices("/dev/vacc0"), 6000).cpus, CpuSet::range(0, 5)) << exporter;
  }
}

TEST_F(RoomBesideGpus, IsNotNeededBesideGpusThatSomebodyHasAllOf) {
  SimulatedNode made = node();
  create(made, "trainer", env("VA_VISIBLE_DEVICES", "all"), 1500);
  EXPECT_EQ(create(made, "web", "", 2000).cpus, CpuSet::range(0, 1));
}

TEST_F(RoomBesideGpus, IsNeededNoMoreOnceItsUserIsGone) {
  SimulatedNode made = node();
  create(made, "trainer", devices("/dev/vacc0"), 2000);
  made.apply(R"({"op":"remove_pod","pod":"trainer"})");
  create(made, "other", devices("/dev/vacc1"), 2000);
  EXPECT_EQ(create(made, "web", "", 2000).cpus, CpuSet::range(10, 11));
}

TEST_F(RoomBesideGpus, IsGivenBeforeAnythingIsDenied) {
  SimulatedNode made = node();
  for (const char* const pod : {"a", "b", "c", "d"}) {
    EXPECT_EQ(create(made, pod, "", 4000).outcome, "placed") << pod;
  }
}

}  // namespace
}  // namespace topolet::simulate
