#include "plugins/foreign-zone/annotations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace topolet::foreign_zone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Annotations = std::vector<std::pair<std::string, std::string>>;

/// "nodes 0-1, CPUs 0-3", or the error, or nothing.
std::string read(const Annotations& annotations) {
  std::vector<topolet_kv> pairs;
  for (const auto& [name, value] : annotations) pairs.push_back({sdk::borrow(name), sdk::borrow(value)});
  const ForeignZone zone = read_foreign_zone({pairs.data(), pairs.size()});
  if (!zone.error.empty()) return zone.error;
  if (!zone.is_said()) return "";
  return "nodes " + zone.nodes.to_string() + ", CPUs " + zone.cpus.to_string();
}

std::string koordinator(const std::string& json) { return read({{std::string(kKoordinator), json}}); }
std::string crane(const std::string& json) { return read({{std::string(kCrane), json}}); }

TEST(ForeignZoneAnnotations, OfKoordinatorNameCpusAndNodes) {
  EXPECT_EQ(koordinator(R"({"cpuset":"0-3,8","numaNodeResources":[{"node":0,"resources":{"cpu":"4"}},{"node":2}]})"),
            "nodes 0,2, CPUs 0-3,8");
  EXPECT_EQ(koordinator(R"({"cpuset":"2,54"})"), "nodes , CPUs 2,54");
  EXPECT_EQ(koordinator(R"({"numaNodeResources":[{"node":1,"resources":{"cpu":"4"}}]})"), "nodes 1, CPUs ");
  EXPECT_EQ(koordinator("{}"), "");
  EXPECT_EQ(koordinator(R"({"cpuset":"","numaNodeResources":null,"cpuSharedPools":[{"socket":0}]})"), "");
}

TEST(ForeignZoneAnnotations, OfCraneNameNodes) {
  EXPECT_EQ(
      crane(R"([{"name":"node0","type":"Node","resources":{"capacity":{"cpu":"2"}}},{"name":"node3","type":"Node"}])"),
      "nodes 0,3, CPUs ");
  EXPECT_EQ(crane(R"([{"name":"node-1"}])"), "nodes 1, CPUs ");
  EXPECT_EQ(crane(R"([{"name":"gpu7","type":"Device"}])"), "") << "no node";
  EXPECT_EQ(crane("[]"), "");
}

TEST(ForeignZoneAnnotations, NameNodesForCpusNotForGpusOnly) {
  const auto nodes = [](const std::string& list) { return koordinator(R"({"numaNodeResources":[)" + list + "]}"); };
  const std::string gpu = R"({"node":0,"resources":{"nvidia.com/gpu":"1"}})";
  EXPECT_EQ(nodes(gpu + R"(,{"node":1,"resources":{"cpu":"4","memory":"8Gi"}})"), "nodes 1, CPUs ");
  EXPECT_EQ(nodes(gpu + R"(,{"node":1,"resources":{"kubernetes.io/batch-cpu":4000}})"), "nodes 1, CPUs ");
  EXPECT_EQ(nodes(gpu + R"(,{"node":2})"), "nodes 2, CPUs ") << "it is not said what is reserved there";
  EXPECT_EQ(nodes(gpu + R"(,{"node":2,"resources":{"memory":"1Gi"}})"), "nodes 2, CPUs ") << "nobody has CPUs";
  EXPECT_EQ(nodes(R"({"node":2,"resources":{"memory":"1Gi"}},{"node":3,"resources":{"cpu":1}})"), "nodes 3, CPUs ");
  EXPECT_EQ(nodes(R"({"node":0,"resources":{"cpu":"0","nvidia.com/gpu":"1"}},{"node":1,"resources":{"cpu":"500m"}})"),
            "nodes 1, CPUs ");
  EXPECT_EQ(nodes(gpu), "") << "of CPUs nothing is said";
  EXPECT_EQ(koordinator(R"({"cpuset":"4-5","numaNodeResources":[)" + gpu + "]}"), "nodes , CPUs 4-5");
  EXPECT_EQ(crane(R"([{"name":"node0","type":"Node","resources":{"capacity":{"nvidia.com/gpu":"1"}}},
                      {"name":"node1","type":"Node","resources":{"capacity":{"cpu":"2"}}},
                      {"name":"node2","type":"Node","resources":{"allocatable":{"cpu":0}}}])"),
            "nodes 1, CPUs ");
  EXPECT_EQ(nodes(R"({"node":0,"resources":{"cpu":"0.5"}},{"node":1,"resources":{"cpu":"0m"}})"), "nodes 0, CPUs ");
}

TEST(ForeignZoneAnnotations, OfKoordinatorCountBeforeThatOfCrane) {
  const std::string of_crane = R"([{"name":"node1","type":"Node"}])";
  const auto both = [&](const std::string& json) {
    return read({{std::string(kCrane), of_crane}, {std::string(kKoordinator), json}});
  };
  EXPECT_EQ(both(R"({"cpuset":"0"})"), "nodes , CPUs 0");
  EXPECT_EQ(both("{}"), "nodes 1, CPUs ") << "it says nothing";
  EXPECT_THAT(both("x"), HasSubstr("scheduling.koordinator.sh/resource-status = 'x'"));
}

TEST(ForeignZoneAnnotations, ThatCannotBeReadSaySo) {
  for (const std::string bad :
       {"", "0-3", "[]", "null", R"({"cpuset":3})", R"({"cpuset":"0-"})", R"({"cpuset":"3-0"})", R"({"cpuset":"0,"})",
        R"({"cpuset":"99999999999"})", R"({"cpuset":"all"})", R"({"cpuset":"0-70000"})", R"({"numaNodeResources":{}})",
        R"({"numaNodeResources":[0]})", R"({"numaNodeResources":[{"node":-1}]})", R"({"numaNodeResources":[{}]})",
        R"({"numaNodeResources":[{"node":1e99}]})", R"({"numaNodeResources":[{"node":70000}]})",
        "{\"cpuset\":\"\xff\"}"}) {
    EXPECT_THAT(koordinator(bad),
                AllOf(HasSubstr("scheduling.koordinator.sh/resource-status = '"), HasSubstr("' cannot be read: ")))
        << bad;
  }
  for (const std::string bad :
       {"", "{}", "[1]", R"([{"type":"Node"}])", R"([{"name":"zone0","type":"Node"}])", R"([{"name":"node"}])",
        R"([{"name":"node0-1"}])", R"([{"name":"node1,2"}])", R"([{"name":7}])", R"([{"name":"node99999999999"}])"}) {
    EXPECT_THAT(crane(bad), AllOf(HasSubstr("topology.crane.io/topology-result = '"), HasSubstr("' cannot be read: ")))
        << bad;
  }
  const std::string said = koordinator(std::string(100000, '[') + "\n");
  EXPECT_LT(said.size(), 300U);
  EXPECT_EQ(said.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace topolet::foreign_zone
