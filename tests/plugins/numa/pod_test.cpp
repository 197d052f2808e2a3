// The containers of one pod go to the same nodes, with scope = container too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include "tests/plugins/numa/packed.hpp"

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
using sdk::testing::Verdict;
using ::testing::HasSubstr;
using ::testing::Not;

using Values = std::vector<std::pair<std::string, std::string>>;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// Two packages of two nodes of eight CPUs each, 0-7 and so on. All sets of two nodes are candidates.
class NumaPod : public ::testing::Test {
 protected:
  std::vector<Verdict> score(const Container& container, std::uint32_t cpus, const Values& options = {}) {
    request_ = std::make_unique<Request>(machine_, ledger_, container, cpus);
    for (const auto& nodes : {set_of({0, 2}), set_of({0, 3}), set_of({1, 2}), set_of({1, 3})}) {
      request_->candidate(nodes);
    }
    return Plugin(topolet_plugin_v1, host_, packed(options)).score(*request_);
  }

  /// The nodes of the best candidate.
  std::string best(const Container& container, std::uint32_t cpus, const Values& options = {}) {
    const std::vector<Verdict> verdicts = score(container, cpus, options);
    std::string nodes = "none";
    std::int32_t most = -101;
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (verdicts[i].kind != TOPOLET_VERDICT_SCORE || verdicts[i].score <= most) continue;
      most = verdicts[i].score;
      nodes = Set(request_->view().candidates[i].nodes).to_string();
    }
    return nodes;
  }

  Verdict on(const std::vector<Verdict>& verdicts, const Set& nodes) { return verdicts[request_->position(nodes)]; }

  void take(const Set& cpus) { ledger_.place_exclusive({.pod_uid = "stranger"}, cpus); }
  /// The container "app" of the pod.
  void place_app(const Set& cpus, std::int64_t memory_bytes = 0) {
    ledger_.place_exclusive({.name = "app",
                             .cpu_request_milli = static_cast<std::int64_t>(cpus.size()) * 1000,
                             .memory_request_bytes = memory_bytes},
                            cpus);
  }
  static Container shared(std::int64_t milli, std::int64_t pod_milli = 0) {
    return {
        .name = "proxy", .qos = TOPOLET_QOS_BURSTABLE, .cpu_request_milli = milli, .pod_cpu_request_milli = pod_milli};
  }
  static Container exclusive(std::int64_t pod_milli) { return {.pod_cpu_request_milli = pod_milli}; }

  Machine machine_{"pack:2 numa:2(memory=4GB) core:4 pu:2"};
  Ledger ledger_{machine_};
  FakeHost host_;
  std::unique_ptr<Request> request_;
};

TEST_F(NumaPod, KeepsAProxyBesideItsAppThoughOtherNodesAreEmptier) {
  place_app(set_of({16, 17, 18}));
  EXPECT_EQ(best(shared(100), 0), "2");
}

TEST_F(NumaPod, KeepsExclusiveContainersTogetherThoughOtherNodesAreFuller) {
  take(set_of({0, 1, 2, 3, 4}));
  place_app(set_of({16, 17}));
  const auto verdicts = score({.name = "helper"}, 2);
  EXPECT_GT(on(verdicts, set_of({2})).score, on(verdicts, set_of({0})).score);
  EXPECT_THAT(on(verdicts, set_of({0})).reason, HasSubstr("other containers of its pod are on nodes as good"));
  EXPECT_THAT(on(verdicts, set_of({2})).reason, Not(HasSubstr("pod")));
}

TEST_F(NumaPod, IsNotLookedForByWhoIsOfAnotherPod) {
  place_app(set_of({16, 17}));
  take(set_of({0, 1, 2, 3, 4}));
  EXPECT_EQ(best({.pod_uid = "other", .name = "helper"}, 2), "0");
}

TEST_F(NumaPod, IsNobodysWhereItHasNoUid) {
  ledger_.place_exclusive({.pod_uid = "", .name = "app", .cpu_request_milli = 2000}, set_of({16, 17}));
  take(set_of({0, 1, 2, 3, 4}));
  EXPECT_EQ(best({.pod_uid = "", .name = "helper"}, 2), "0");
}

TEST_F(NumaPod, GoesToTheNearestNodeWhereItsOwnIsFull) {
  take(set_of({16, 17, 18, 19, 0, 1, 2}));
  place_app(set_of({20, 21, 22, 23}));
  EXPECT_EQ(best({.name = "helper"}, 2), "3") << "of the same package, though node 0 is fuller";
}

TEST_F(NumaPod, FollowsTheLargerPartOfAPodThatIsApartAlready) {
  place_app(set_of({8, 9, 10, 11}));
  ledger_.place_shared({.name = "logs", .qos = TOPOLET_QOS_BURSTABLE, .cpu_request_milli = 100},
                       machine_.cpus_of_node(3));
  EXPECT_EQ(best(shared(100), 0), "1");
}

TEST_F(NumaPod, FollowsContainersThatRequestNothingWhereTheyAreKeptToOneNode) {
  take(set_of({0, 1, 2}));
  ledger_.place_shared({.name = "logs", .qos = TOPOLET_QOS_BESTEFFORT}, machine_.online());
  EXPECT_EQ(best({.name = "helper"}, 2), "0");
  ledger_.place_shared({.name = "init", .qos = TOPOLET_QOS_BESTEFFORT}, machine_.cpus_of_node(3));
  EXPECT_EQ(best({.name = "helper"}, 2), "3");
}

TEST_F(NumaPod, IsNotWorthAnotherNode) {
  place_app(set_of({0, 1, 2, 3}));
  EXPECT_EQ(best({.name = "helper"}, 6), "1") << "in one node, beside the pod, and not in two";
}

TEST_F(NumaPod, IsPartOfASetOfSeveralNodes) {
  take(set_of({0, 8, 24}));
  place_app(set_of({16}));
  EXPECT_EQ(best({.name = "helper"}, 14), "2-3") << "nodes 0-1 are as many, as near and as full";
}

TEST_F(NumaPod, BeginsWhereTheRestOfItFits) {
  take(set_of({0, 1, 2, 3, 8, 9, 10}));
  EXPECT_EQ(best(exclusive(2000), 2), "0") << "alone";
  const auto verdicts = score(exclusive(5000), 2);
  EXPECT_GT(on(verdicts, set_of({1})).score, on(verdicts, set_of({0})).score);
  EXPECT_GT(on(verdicts, set_of({1})).score, on(verdicts, set_of({2})).score) << "the fullest of those";
  EXPECT_THAT(on(verdicts, set_of({0})).reason,
              HasSubstr("other nodes have room for the rest of its pod, too, which requests 3 CPUs"));
}

TEST_F(NumaPod, LeavesACpuToTheProxyThatIsStillToCome) {
  take(set_of({0, 1, 2, 3, 4, 5, 8, 9, 10, 11}));
  EXPECT_EQ(best(exclusive(2100), 2), "1");
}

TEST_F(NumaPod, LeavesAloneWhatOthersRequestOfTheNode) {
  take(set_of({0, 1, 2, 3, 8, 9, 10}));
  ledger_.place_shared({.pod_uid = "stranger", .qos = TOPOLET_QOS_BURSTABLE, .cpu_request_milli = 900},
                       machine_.cpus_of_node(0));
  EXPECT_EQ(best(exclusive(3200), 3), "1") << "node 0 has one CPU left for 1.1";
}

TEST_F(NumaPod, CountsOnlyWhatIsStillToCome) {
  place_app(set_of({0, 1, 2}));
  take(set_of({3, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(best({.name = "helper", .pod_cpu_request_milli = 5000}, 2), "0");
  EXPECT_EQ(best({.pod_uid = "other", .name = "helper", .pod_cpu_request_milli = 5000}, 2), "2");
}

TEST_F(NumaPod, IsPackedAsUsualWhereNoNodeHasRoomForAllOfIt) {
  take(set_of({0, 1, 2, 3}));
  EXPECT_EQ(best(exclusive(10000), 2), "0");
}

TEST_F(NumaPod, BeginsWithSharedContainersToo) {
  take(set_of({0, 1, 2, 3, 4, 5, 8}));
  const Values packed = {{"shared-strategy", "packed"}};
  EXPECT_EQ(best(shared(100, 100), 0, packed), "0");
  EXPECT_EQ(best(shared(100, 3000), 0, packed), "1");
}

TEST_F(NumaPod, BeginsWhereItsMemoryFits) {
  ledger_.place_exclusive({.pod_uid = "stranger", .memory_request_bytes = 3 * kGiB}, set_of({0, 1, 2, 3}), {},
                          set_of({0}));
  Container first = exclusive(3000);
  first.memory_request_bytes = first.pod_memory_request_bytes = kGiB / 4;
  EXPECT_EQ(best(first, 2), "0");
  first.pod_memory_request_bytes = 2 * kGiB;
  EXPECT_NE(best(first, 2), "0");
}

TEST_F(NumaPod, IsWhatCountsForAContainerThatRequestsNothing) {
  ledger_.place_shared({.pod_uid = "stranger", .qos = TOPOLET_QOS_BURSTABLE, .cpu_request_milli = 1000},
                       machine_.cpus_of_node(0));
  const auto verdicts = score(shared(0, 7500), 0);
  EXPECT_GT(on(verdicts, set_of({1})).score, on(verdicts, set_of({0})).score);
  EXPECT_THAT(on(verdicts, set_of({1})).reason, HasSubstr("(7.5 requested by its pod)"));
  for (const Verdict& verdict : score(shared(0), 0)) EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(NumaPod, IsAllThereForAContainerThatRequestsNothing) {
  place_app(set_of({16, 17, 18}));
  for (const Verdict& verdict : score(shared(0, 3000), 0)) EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(best(shared(0, 4000), 0), "2");
}

TEST_F(NumaPod, CountsCpusWhereNoNodeHasTheMemory) {
  take(set_of({0, 1, 2, 3}));
  Container first = exclusive(6000);
  first.pod_memory_request_bytes = 900 * kGiB;
  EXPECT_NE(best(first, 2), "0");
}

TEST_F(NumaPod, CountsForNothingUnderPolicyNone) {
  place_app(set_of({16, 17, 18}));
  const auto exclusives = score({.name = "helper", .pod_cpu_request_milli = 9000}, 2, {{"policy", "none"}});
  for (const Verdict& verdict : exclusives) EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
  for (const Verdict& verdict : score(shared(100), 0, {{"policy", "none"}})) {
    EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
  }
}

TEST_F(NumaPod, IsTogetherUnderEveryOtherPolicy) {
  take(set_of({0, 1, 2, 3, 4}));
  place_app(set_of({16, 17}));
  for (const char* policy : {"best-effort", "restricted", "single-numa-node"}) {
    EXPECT_EQ(best({.name = "helper"}, 2, {{"policy", policy}}), "2") << policy;
    EXPECT_EQ(best({.name = "helper"}, 2, {{"policy", policy}, {"strategy", "spread"}}), "2") << policy;
  }
  EXPECT_EQ(best({.name = "helper"}, 2, {{"prefer-closest-numa-nodes", "true"}}), "2");
}

TEST_F(NumaPod, DeniesNobody) {
  take(set_of({16, 17, 18, 19, 20, 21}));
  place_app(set_of({22, 23}));
  for (const Verdict& verdict : score({.name = "helper", .pod_cpu_request_milli = 90000}, 2)) {
    EXPECT_TRUE(verdict.kind == TOPOLET_VERDICT_SCORE || verdict.reason.starts_with("node 2 has")) << verdict.reason;
  }
}

TEST_F(NumaPod, ComesBeforeCachesAndTheStrategy) {
  Machine machine("pack:2 numa:1 l3:2 core:2 pu:2");
  Ledger ledger(machine);
  ledger.place_exclusive({.name = "app", .cpu_request_milli = 4000}, set_of({0, 1, 4, 5}));
  const Request request(machine, ledger, {.name = "helper"}, 4);
  const auto verdicts = Plugin(topolet_plugin_v1, host_).score(request);
  EXPECT_GT(verdicts[request.position(set_of({0}))].score, verdicts[request.position(set_of({1}))].score);
}

}  // namespace
}  // namespace topolet::numa
