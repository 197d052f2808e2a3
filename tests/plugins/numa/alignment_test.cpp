// Admission by the policies, container by container and pod by pod.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <numeric>

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

using Values = std::vector<std::pair<std::string, std::string>>;

/// Two packages of two nodes of four CPUs each; every set of nodes is a candidate.
class NumaAlignment : public ::testing::Test {
 protected:
  std::vector<Verdict> score(const Values& options, const Container& container, std::uint32_t cpus) {
    request_ = std::make_unique<Request>(machine_, ledger_, container, cpus);
    for (const auto& nodes : {set_of({0, 2}), set_of({0, 3}), set_of({1, 2}), set_of({1, 3}), set_of({0, 1, 2}),
                              set_of({0, 1, 3}), set_of({0, 2, 3}), set_of({1, 2, 3})}) {
      request_->candidate(nodes);
    }
    Plugin plugin(topolet_plugin_v1, host_, packed(options));
    return plugin.score(*request_);
  }

  /// The nodes of the best candidate; "denied" if there is none, "none" if nobody has an opinion.
  std::string best(const Values& options, const Container& container, std::uint32_t cpus) {
    const std::vector<Verdict> verdicts = score(options, container, cpus);
    std::string nodes = "denied";
    std::int32_t most = -101;
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (verdicts[i].kind == TOPOLET_VERDICT_ABSTAIN) return "none";
      if (verdicts[i].kind != TOPOLET_VERDICT_SCORE || verdicts[i].score <= most) continue;
      most = verdicts[i].score;
      nodes = Set(request_->view().candidates[i].nodes).to_string();
    }
    return nodes;
  }

  std::string reason(const std::vector<Verdict>& verdicts, const Set& nodes) {
    return verdicts[request_->position(nodes)].reason;
  }

  Machine machine_{"pack:2 numa:2(memory=4GB) l3:1 core:2 pu:2"};
  Ledger ledger_{machine_};
  FakeHost host_;
  std::unique_ptr<Request> request_;
};

TEST_F(NumaAlignment, NoneHasNoOpinion) { EXPECT_EQ(best({{"policy", "none"}}, {}, 2), "none"); }

TEST_F(NumaAlignment, BestEffortTakesWhatThereIs) {
  ledger_.place_exclusive({}, set_of({0, 4, 8, 12}));
  EXPECT_EQ(best({}, {}, 4), "0-1");
}

TEST_F(NumaAlignment, RestrictedDeniesMoreNodesThanAnEmptyMachineWouldNeed) {
  ledger_.place_exclusive({}, set_of({0, 4, 8}));
  EXPECT_EQ(best({{"policy", "restricted"}}, {}, 4), "3");
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({12}));
  EXPECT_EQ(best({{"policy", "restricted"}}, {}, 4), "denied");
  const auto verdicts = score({{"policy", "restricted"}}, {}, 4);
  EXPECT_EQ(reason(verdicts, set_of({1})), "node 1 has 3 of 4 CPUs free, but the container requests 4");
  EXPECT_EQ(reason(verdicts, set_of({0, 1})),
            "policy restricted allows at most 1 node: so many would be enough on an empty machine");
}

TEST_F(NumaAlignment, RestrictedAllowsTheFewestNodesPossibleEvenIfTheyAreMany) {
  EXPECT_EQ(best({{"policy", "restricted"}}, {}, 6), "0-1");
  EXPECT_EQ(best({{"policy", "restricted"}}, {}, 13), "0-3");
  EXPECT_EQ(best({{"policy", "single-numa-node"}}, {}, 6), "denied");
}

TEST_F(NumaAlignment, GivesAllSetsOfAsManyNodesTheSameReason) {
  ledger_.place_exclusive({}, set_of({0, 4, 5}));
  const auto verdicts = score({}, {}, 8);
  EXPECT_EQ(reason(verdicts, set_of({0, 1})),
            "2 nodes together have too few free CPUs for the 8 that the container requests");
  EXPECT_EQ(reason(verdicts, set_of({0, 1})), reason(verdicts, set_of({0, 2})));
}

TEST_F(NumaAlignment, CountsReservedCpusTowardsTheFewestNodesPossible) {
  ledger_.reserve(set_of({0, 4, 8, 12}));
  EXPECT_EQ(best({{"policy", "restricted"}}, {}, 4), "denied") << "a node has four CPUs, reserved or not";
  EXPECT_EQ(best({}, {}, 4), "0-1");
}

TEST_F(NumaAlignment, SingleNumaNodeSaysWhatEachNodeHas) {
  ledger_.place_exclusive({}, set_of({0, 4, 8, 12}));
  const auto verdicts = score({{"policy", "single-numa-node"}}, {}, 4);
  EXPECT_EQ(reason(verdicts, set_of({2})), "node 2 has 3 of 4 CPUs free, but the container requests 4");
  EXPECT_EQ(reason(verdicts, set_of({0, 1})), "policy single-numa-node allows one node only, not a set of several");
}

TEST_F(NumaAlignment, NeverDeniesSharedContainers) {
  const Container shared{.qos = TOPOLET_QOS_BURSTABLE, .cpu_request_milli = 5500};
  EXPECT_EQ(best({{"policy", "single-numa-node"}}, shared, 0), "0-1");
}

TEST_F(NumaAlignment, AnAnnotationOverridesThePolicy) {
  const Container strict{.settings = {{"numa-policy", "single-numa-node"}}};
  EXPECT_EQ(best({}, strict, 6), "denied");
  const Container lax{.settings = {{"numa-policy", "best-effort"}}};
  EXPECT_EQ(best({{"policy", "single-numa-node"}}, lax, 6), "0-1");
  const Container none{.settings = {{"numa-policy", "none"}}};
  EXPECT_EQ(best({}, none, 6), "none");
}

TEST_F(NumaAlignment, ABadAnnotationIsADenialThatNamesIt) {
  for (const char* const value : {"strict", "", "Restricted", "a\nb"}) {
    const Container container{.settings = {{"numa-policy", value}}};
    for (const Verdict& verdict : score({{"policy", "none"}}, container, 0)) {
      EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_REJECT);
      EXPECT_THAT(verdict.reason, HasSubstr("topolet.io/numa-policy"));
      EXPECT_THAT(verdict.reason,
                  HasSubstr("it must be one of 'none', 'best-effort', 'restricted', 'single-numa-node'"));
      EXPECT_EQ(verdict.reason.find('\n'), std::string::npos);
    }
  }
  const Container container{.settings = {{"numa-policy", "strict"}}};
  EXPECT_THAT(score({}, container, 2)[0].reason, HasSubstr("'strict'"));
}

TEST_F(NumaAlignment, FullPcpusOnlyDeniesPartsOfCores) {
  EXPECT_EQ(best({{"full-pcpus-only", "true"}}, {}, 2), "0");
  const auto verdicts = score({{"full-pcpus-only", "true"}, {"policy", "none"}}, {}, 3);
  EXPECT_EQ(verdicts[0].reason,
            "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2 (full-pcpus-only)");
  ledger_.reserve(set_of({0}));
  ledger_.place_exclusive({}, set_of({2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(score({{"full-pcpus-only", "true"}}, {}, 4)[0].reason,
            "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2, requested CPUs = 4, CPUs "
            "per core = 2 (full-pcpus-only)");
}

TEST_F(NumaAlignment, AlignBySocketCountsPackages) {
  ledger_.place_exclusive({}, set_of({0, 4, 8, 12}));
  EXPECT_EQ(best({{"policy", "restricted"}}, {}, 4), "denied");
  EXPECT_EQ(best({{"policy", "restricted"}, {"align-by-socket", "true"}}, {}, 4), "0-1");
  EXPECT_EQ(best({{"policy", "restricted"}, {"align-by-socket", "true"}}, {}, 7), "denied");
  const Container single{.settings = {{"numa-policy", "single-numa-node"}}};
  EXPECT_EQ(best({{"align-by-socket", "true"}}, single, 4), "denied");
}

TEST_F(NumaAlignment, PrefersCloseNodesAndSaysWhenItDoesNotKnow) {
  ledger_.place_exclusive({}, set_of({0, 1, 12, 13}));
  EXPECT_THAT(reason(score({}, {}, 6), set_of({0, 1})),
              HasSubstr("the machine does not report node distances: 10 and 20 are assumed"));
  machine_.distances({10, 32, 12, 32, 32, 10, 32, 12, 12, 32, 10, 32, 32, 12, 32, 10});
  EXPECT_EQ(best({}, {}, 6), "0,2");
  const auto plain = score({}, {}, 6);
  EXPECT_EQ(plain[request_->position(set_of({0, 1}))].score, 86);
  const auto closest = score({{"prefer-closest-numa-nodes", "true"}}, {}, 6);
  EXPECT_EQ(closest[request_->position(set_of({0, 1}))].score, 80);
}

TEST_F(NumaAlignment, PrefersFewNodesToCloseOnesInAnyCase) {
  machine_.distances({10, 99, 99, 99, 99, 10, 11, 11, 99, 11, 10, 11, 99, 11, 11, 10});
  ledger_.place_exclusive({}, set_of({4, 5, 8, 9, 12, 13}));
  for (const char* const closest : {"false", "true"}) {
    const auto verdicts = score({{"prefer-closest-numa-nodes", closest}}, {}, 6);
    const auto of = [&](const Set& nodes) { return verdicts[request_->position(nodes)].score; };
    EXPECT_GT(of(set_of({0, 3})), of(set_of({1, 2, 3}))) << "prefer-closest-numa-nodes = " << closest;
  }
}

TEST_F(NumaAlignment, PodScopeJudgesTheFirstContainerByThePod) {
  const Container first{.pod_cpu_request_milli = 4500};
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0}));
  EXPECT_EQ(best({}, first, 2), "0") << "the fullest node";
  EXPECT_EQ(best({{"scope", "pod"}}, first, 2), "1") << "node 0 has not four free";
  ledger_.place_exclusive({.pod_uid = "another"}, set_of({4, 8, 12}));
  EXPECT_EQ(best({{"scope", "pod"}}, first, 2), "0-1") << "none has";
  EXPECT_EQ(best({{"scope", "pod"}, {"policy", "restricted"}}, first, 2), "denied");
  EXPECT_EQ(reason(score({{"scope", "pod"}, {"policy", "restricted"}}, first, 2), set_of({1})),
            "node 1 has 3 of 4 CPUs free, but the pod requests 4");
}

TEST_F(NumaAlignment, PodScopeForgetsAPodThatIsTooLargeUnlessItMayDeny) {
  const Container first{.pod_cpu_request_milli = 40000};
  EXPECT_EQ(best({{"scope", "pod"}}, first, 2), "0");
  EXPECT_EQ(best({{"scope", "pod"}, {"policy", "restricted"}}, first, 2), "denied");
}

TEST_F(NumaAlignment, PodScopeKeepsLaterContainersTogether) {
  const Container later{.pod_cpu_request_milli = 6000, .pod_nodes = set_of({2, 3})};
  const Container shared{.qos = TOPOLET_QOS_GUARANTEED,
                         .cpu_request_milli = 500,
                         .pod_cpu_request_milli = 6000,
                         .pod_nodes = set_of({2, 3})};
  ledger_.place_exclusive({.name = "first"}, set_of({8, 9, 10, 11}));
  EXPECT_EQ(best({{"scope", "pod"}}, later, 2), "3");
  EXPECT_EQ(best({{"scope", "pod"}}, shared, 0), "3");
  EXPECT_EQ(best({{"scope", "pod"}, {"policy", "restricted"}}, later, 2), "3");
  EXPECT_THAT(reason(score({{"scope", "pod"}, {"policy", "restricted"}}, later, 2), set_of({0})),
              HasSubstr("it is not within nodes 2-3, where the pod was placed"));
  ledger_.place_exclusive({.name = "other"}, set_of({12, 13, 14}));
  EXPECT_EQ(best({{"scope", "pod"}, {"policy", "restricted"}}, later, 2), "denied");
  EXPECT_EQ(best({{"scope", "pod"}}, later, 2), "0") << "best effort goes elsewhere";
}

TEST_F(NumaAlignment, PodScopeAllowsAnyNumberOfNodesInsideThePods) {
  const Container later{.pod_cpu_request_milli = 6000, .pod_nodes = set_of({2, 3})};
  ledger_.place_exclusive({.name = "first"}, set_of({8, 9, 10, 12, 13, 14}));
  EXPECT_EQ(best({{"scope", "pod"}, {"policy", "restricted"}}, later, 2), "2-3");
}

TEST_F(NumaAlignment, PodScopeWithoutAPodsDemandIsContainerScopeAndSaysSo) {
  const auto verdicts = score({{"scope", "pod"}}, {}, 2);
  EXPECT_THAT(verdicts[0].reason, HasSubstr("the request of the whole pod is unknown"));
  EXPECT_EQ(verdicts[0].score, 100);
}

}  // namespace
}  // namespace topolet::numa
