#include "tests/bench/kubelet_model.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/topology/discover.hpp"

namespace topolet::bench {
namespace {

std::shared_ptr<const topology::Topology> machine(const std::string& synthetic) {
  auto found = topology::discover({.synthetic = synthetic});
  if (!found) throw std::logic_error(found.error().message);
  return *std::move(found);
}

CpuSet cpus(const std::string& list) { return *CpuSet::parse(list); }

TEST(KubeletModel, TakesTheCpusOfTheKubeletsOwnTests) {
  std::ifstream file(TOPOLET_TEST_DATA "/vectors/kubelet-cpu-assignment.jsonl");
  int checked = 0;
  for (std::string line; std::getline(file, line);) {
    const auto vector = nlohmann::json::parse(line);
    if (!vector["options"].empty() || vector["expect"].is_null()) continue;
    SCOPED_TRACE(vector["id"].get<std::string>());
    const auto topology = machine(vector["topology"].get<std::string>());
    const CpuSet available = topology->allowed - cpus(vector["occupied"].get<std::string>());
    const CpuSet taken = take_by_topology(*topology, available, vector["cpus"].get<std::size_t>());
    EXPECT_EQ(taken.to_string(), cpus(vector["expect"].get<std::string>()).to_string());
    ++checked;
  }
  EXPECT_GE(checked, 8);
}

TEST(KubeletModel, TakesNothingWhereTooLittleIsAvailable) {
  EXPECT_TRUE(take_by_topology(*machine("pack:1 numa:1 core:4 pu:1"), CpuSet{0, 1}, 3).empty());
}

TEST(KubeletModel, TakesWholeNodesBeforeTheirPackages) {
  const auto topology = machine("numa:2 pack:2 core:4 pu:1");
  EXPECT_EQ(take_by_topology(*topology, topology->allowed - CpuSet{0}, 8).to_string(), "8-15");
}

TEST(KubeletModel, PrefersTheLowestOfTheNarrowestSetsOfNodes) {
  KubeletModel kubelet(machine("pack:4 numa:1 core:4 pu:1"));
  EXPECT_EQ(kubelet.admit(0, 3)->to_string(), "0-2");
  EXPECT_EQ(kubelet.admit(1, 2)->to_string(), "4-5");        // node 0 has one left
  EXPECT_EQ(kubelet.admit(2, 1)->to_string(), "3");          // the lowest, not the fullest
  EXPECT_EQ(kubelet.admit(3, 3)->to_string(), "8-10");       // node 2
  EXPECT_EQ(kubelet.admit(4, 6)->to_string(), "6-7,12-15");  // nodes 1 and 3; the whole node before the rest
}

TEST(KubeletModel, SpansNodesWhereNoneHasEnough) {
  KubeletModel kubelet(machine("pack:2 numa:1 core:4 pu:1"));
  ASSERT_TRUE(kubelet.admit(0, 3));
  ASSERT_TRUE(kubelet.admit(1, 3));
  EXPECT_EQ(kubelet.admit(2, 2)->to_string(), "3,7");
  EXPECT_FALSE(kubelet.admit(3, 1));
}

TEST(KubeletModel, GivesBackWhatAPodHad) {
  KubeletModel kubelet(machine("pack:2 numa:1 core:4 pu:1"));
  ASSERT_TRUE(kubelet.admit(0, 4));
  kubelet.end(0);
  kubelet.end(7);  // never admitted
  EXPECT_EQ(kubelet.admit(1, 4)->to_string(), "0-3");
}

}  // namespace
}  // namespace topolet::bench
