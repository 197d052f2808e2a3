// Strategy roomy: which node comes first while there is room, and once there is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace topolet::numa {
namespace {

using sdk::Set;
using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::HasSubstr;

using Labels = std::vector<std::pair<std::string, std::string>>;

Set range(std::uint32_t first, std::uint32_t last) {
  Set set;
  for (std::uint32_t cpu = first; cpu <= last; ++cpu) set.insert(cpu);
  return set;
}

class NumaRoomy : public ::testing::Test {
 protected:
  explicit NumaRoomy(const char* machine = "pack:2 numa:1 core:8 pu:1") : machine_(machine), ledger_(machine_) {}

  void occupy(const std::string& pod, const Set& cpus, const Labels& labels = {}) {
    ledger_.place_exclusive({.pod_uid = pod, .pod_labels = labels}, cpus);
  }

  std::vector<sdk::testing::Verdict> score(std::uint32_t cpus, std::uint32_t largest = 0,
                                           const Container& container = {},
                                           const Plugin::Values& options = {{"strategy", "roomy"}}) {
    Request request(machine_, ledger_, container, cpus);
    request.largest_exclusive_cpus(largest);
    return Plugin(topolet_plugin_v1, host_, options).score(request);
  }

  /// The node with the most points.
  int best(std::uint32_t cpus, std::uint32_t largest = 0, const Container& container = {}) {
    const auto verdicts = score(cpus, largest, container);
    return verdicts[0].score == verdicts[1].score ? -1 : verdicts[0].score > verdicts[1].score ? 0 : 1;
  }

  Machine machine_;  // node 0: CPUs 0-7; node 1: 8-15
  Ledger ledger_;
  FakeHost host_;
};

TEST_F(NumaRoomy, TakesTheEmptierNodeWhileHalfOfTheMachineStaysFree) {
  occupy("other", range(0, 3));
  EXPECT_EQ(best(4), 1);
  EXPECT_EQ(score(4)[0].reason, "all 4 CPUs requested fit on node 0 (4 free); strategy roomy prefers emptier nodes");
}

TEST_F(NumaRoomy, TakesTheFullerNodeOnceLessThanHalfWouldStayFree) {
  occupy("other", range(0, 4));
  EXPECT_EQ(best(3), 1);
  occupy("another", range(8, 10));
  EXPECT_EQ(best(1), 0);
  EXPECT_THAT(score(1)[1].reason, HasSubstr("strategy roomy prefers fuller nodes"));
}

TEST_F(NumaRoomy, KeepsRoomForTheLargestContainerWhereThatIsLessThanHalf) {
  occupy("other", range(0, 5));
  occupy("another", range(8, 11));
  EXPECT_EQ(best(2), 0);
  EXPECT_EQ(best(2, 2), 1) << "2 CPUs for each node";
  EXPECT_EQ(best(2, 3), 0);
  EXPECT_EQ(best(1, 7), 0) << "half a node is kept at most, and that is not there";
}

TEST_F(NumaRoomy, CountsWhatSharedContainersRequestAsTaken) {
  occupy("other", range(0, 3));
  ledger_.place_shared({.pod_uid = "shared", .cpu_request_milli = 3500}, range(8, 15));
  EXPECT_EQ(best(1), 0) << "4.5 CPUs are left on node 1, and 4 on node 0";
}

TEST_F(NumaRoomy, DoesNotCountReservedCpusAsANodes) {
  ledger_.reserve(set_of({0, 8}));
  occupy("other", range(1, 5));
  EXPECT_EQ(best(3), 1) << "3 of 7 are half of a node";
}

const Labels kFirst = {{"app", "web"}, {"pod-template-hash", "5d4f"}};
const Labels kSecond = {{"app", "web"}, {"pod-template-hash", "77ab"}};

TEST_F(NumaRoomy, KeepsPodsOfAWorkloadOnDifferentNodes) {
  occupy("other", range(8, 10));
  occupy("first", range(0, 1), kFirst);
  EXPECT_EQ(best(2), 0);
  EXPECT_EQ(best(2, 0, {.pod_uid = "second", .pod_labels = kSecond}), 1);
  EXPECT_THAT(score(2, 0, {.pod_uid = "second", .pod_labels = kSecond})[0].reason,
              HasSubstr("strategy roomy prefers nodes with fewer pods of its workload"));
}

TEST_F(NumaRoomy, KnowsAWorkloadByNamespaceAndLabels) {
  occupy("other", range(8, 10));
  occupy("web-0", range(0, 1),
         {{"app", "db"}, {"apps.kubernetes.io/pod-index", "0"}, {"statefulset.kubernetes.io/pod-name", "web-0"}});
  const Labels next = {{"app", "db"},
                       {"apps.kubernetes.io/pod-index", "1"},
                       {"controller-revision-hash", "x"},
                       {"statefulset.kubernetes.io/pod-name", "web-1"}};
  EXPECT_EQ(best(2, 0, {.pod_uid = "web-1", .pod_labels = next}), 1);
  EXPECT_EQ(best(2, 0, {.pod_uid = "web-1", .pod_namespace = "elsewhere", .pod_labels = next}), 0);
  EXPECT_EQ(best(2, 0, {.pod_uid = "web-1", .pod_labels = {{"app", "db"}, {"tier", "1"}}}), 0);
  EXPECT_EQ(best(2, 0, {.pod_uid = "web-1", .pod_labels = {{"app", "other"}}}), 0);
}

TEST_F(NumaRoomy, KnowsNoWorkloadOfPodsWithoutLabels) {
  occupy("other", range(8, 10));
  occupy("first", range(0, 1), {{"pod-template-hash", "5d4f"}});
  EXPECT_EQ(best(2, 0, {.pod_uid = "second", .pod_labels = {{"pod-template-hash", "5d4f"}}}), 0);
}

TEST_F(NumaRoomy, PacksPodsOfAWorkloadOnceThereIsLittleRoom) {
  occupy("other", range(8, 13));
  occupy("first", range(0, 6), kFirst);
  EXPECT_EQ(best(1, 0, {.pod_uid = "second", .pod_labels = kSecond}), 0);
}

TEST_F(NumaRoomy, AvoidsNodesWhoseSharedCpusAreBusy) {
  occupy("other", range(0, 1));
  ledger_.place_shared({.pod_uid = "sharing"}, range(8, 15));
  const auto best_with = [this](std::int64_t milli, std::int64_t age_ms) {
    const std::array<topolet_entry_load, 2> used{{{8000, 1, -1, 0}, {milli, age_ms, -1, 0}}};
    topolet_load load{};
    load.struct_size = sizeof(load);
    load.entries = used.data();
    load.entry_stride = sizeof(topolet_entry_load);
    Request request(machine_, ledger_, {}, 2);
    request.load(load);
    const auto verdicts = Plugin(topolet_plugin_v1, host_, {{"strategy", "roomy"}}).score(request);
    return verdicts[0].score > verdicts[1].score ? 0 : 1;
  };
  EXPECT_EQ(best_with(4001, 1000), 0) << "the fuller node";
  EXPECT_EQ(best_with(4000, 1000), 1) << "half of them are free";
  EXPECT_EQ(best_with(8000, 60'001), 1) << "too long ago";
  EXPECT_EQ(best_with(-1, 1000), 1) << "not known";
}

class NumaRoomyCaches : public NumaRoomy {
 protected:
  NumaRoomyCaches() : NumaRoomy("pack:2 numa:1 l3:2 core:4 pu:1") {}
};

TEST_F(NumaRoomyCaches, KeepHalfOfThemselvesWhereTheLargestIsLarger) {
  occupy("other", range(0, 5));
  EXPECT_EQ(best(2, 4), 1) << "8 CPUs stay free: 2 for each cache";
  EXPECT_EQ(best(2, 2), 1);
  occupy("another", range(8, 9));
  EXPECT_EQ(best(2, 4), 0) << "6 would";
  EXPECT_EQ(best(2, 1), 1) << "a CPU for each is enough";
}

TEST_F(NumaRoomyCaches, AreFilledOnceTheNodesAreEquallyEmpty) {
  occupy("other", range(0, 1));
  EXPECT_EQ(best(2), 1) << "the emptier node, though two CPUs are just what is left of a cache on the other";
  occupy("another", set_of({8, 12}));
  EXPECT_EQ(best(2), 0);
  EXPECT_THAT(score(2)[1].reason, HasSubstr("strategy roomy prefers caches of which less would be left over"));
}

}  // namespace
}  // namespace topolet::numa
