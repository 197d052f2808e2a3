#include "plugins/smt/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <tuple>

namespace topolet::smt {
namespace {

using sdk::Set;
using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using PluginVerdict = sdk::testing::Verdict;
using PluginPicked = sdk::testing::Picked;

constexpr std::uint32_t kFullPcpusOnly = TOPOLET_REQUEST_WHOLE_CORES;
const Container kIsolated = {.settings = {{"smt", "isolate"}}};
const Container kHeavy = {.settings = {{"cpu-profile", "heavy"}}};
const Container kLight = {.settings = {{"cpu-profile", "light"}}};

/// Two nodes of two cores of two threads: node 0 has CPUs 0-3, cores 0-1, 2-3, …
class SmtTest : public ::testing::Test {
 protected:
  std::vector<PluginVerdict> score(const Container& container, std::uint32_t cpus, const Plugin::Values& values = {},
                                   std::uint32_t flags = 0) {
    Plugin plugin(topolet_plugin_v1, host_, values);
    return plugin.score(Request(machine_, ledger_, container, cpus).flags(flags));
  }
  /// On the whole machine, the last candidate.
  PluginPicked pick(const Container& container, std::uint32_t cpus, const Plugin::Values& values = {},
                    std::uint32_t flags = 0, const Set& chosen = {}) {
    Plugin plugin(topolet_plugin_v1, host_, values);
    Request request(machine_, ledger_, container, cpus);
    request.flags(flags);
    return plugin.pick(request, request.view().candidate_count - 1, chosen);
  }

  Machine machine_{"numa:2 core:2 pu:2"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(SmtTest, HasNoOpinionOnContainersThatAskForNothing) {
  EXPECT_THAT(score({}, 3), Each(Field(&PluginVerdict::kind, TOPOLET_VERDICT_ABSTAIN)));
  EXPECT_FALSE(pick({}, 3).narrowed);
  EXPECT_TRUE(pick({}, 3, {}, 0, set_of({0, 1, 2})).withhold.empty());
}

TEST_F(SmtTest, KeepsTheSiblingsOfAnIsolatedContainerIdle) {
  EXPECT_FALSE(pick(kIsolated, 3).narrowed) << "all cores are whole";
  const PluginPicked beside = pick(kIsolated, 3, {}, 0, set_of({0, 1, 2}));
  EXPECT_EQ(beside.withhold.to_string(), "3");
  EXPECT_EQ(beside.reason, "CPU 3 is kept idle (topolet.io/smt = isolate)");
  EXPECT_TRUE(beside.unmet.empty());
}

TEST_F(SmtTest, IsolatesOnWholeCoresOnly) {
  ledger_.place_exclusive({}, set_of({1})).reserve(set_of({6}));
  EXPECT_EQ(pick(kIsolated, 3).narrow.to_string(), "2-5") << "what is beside a reserved CPU is no whole core either";
}

TEST_F(SmtTest, ReportsIsolationThatIsImpossible) {
  ledger_.place_exclusive({}, set_of({1, 3, 5, 7}));
  EXPECT_FALSE(pick(kIsolated, 1).narrowed);
  const PluginPicked beside = pick(kIsolated, 1, {}, 0, set_of({0}));
  EXPECT_TRUE(beside.withhold.empty());
  EXPECT_EQ(beside.unmet,
            "CPU 1 cannot be kept idle beside CPU 0: reserved or used by others (topolet.io/smt = isolate)");
}

TEST_F(SmtTest, PrefersCandidatesWhereIsolationIsPossible) {
  ledger_.place_exclusive({}, set_of({1}));
  const auto verdicts = score(kIsolated, 3);
  EXPECT_EQ(verdicts[0].score, 0);
  EXPECT_EQ(verdicts[0].reason, "node 0 has 2 CPUs on free whole cores, too few to isolate 3");
  EXPECT_EQ(verdicts[1].score, 100);
  EXPECT_EQ(verdicts[1].reason, "node 1 has 4 CPUs on free whole cores, enough to isolate 3");
  EXPECT_EQ(verdicts[2].score, 100);
}

TEST_F(SmtTest, AbstainsWithReasonsWhereAllCandidatesAreAlike) {
  for (const PluginVerdict& verdict : score(kIsolated, 2)) {
    EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
    EXPECT_THAT(verdict.reason, HasSubstr("on free whole cores, enough to isolate 2"));
  }
}

TEST_F(SmtTest, IsolatesContainersThatOptionOrAnnotationNames) {
  const Container shares = {.settings = {{"smt", "share"}}};
  const std::vector<std::tuple<const char*, Container, bool>> cases = {
      {"off", kIsolated, false}, {"off", {}, false},           {"annotated", kIsolated, true},
      {"annotated", {}, false},  {"annotated", shares, false}, {"exclusive", kIsolated, true},
      {"exclusive", {}, true},   {"exclusive", shares, false}};
  for (const auto& [option, container, isolated] : cases) {
    const Set withheld = pick(container, 1, {{"isolate-siblings", option}}, {}, set_of({4})).withhold;
    EXPECT_EQ(withheld.to_string(), isolated ? "5" : "")
        << option << ' ' << (container.settings.empty() ? "" : container.settings[0].second);
  }
}

TEST_F(SmtTest, SaysWhichAnnotationHasNoEffect) {
  EXPECT_EQ(score(kIsolated, 0)[0].reason,
            "topolet.io/smt = isolate has no effect: the container has no exclusive CPUs");
  EXPECT_EQ(score(kIsolated, 1, {{"isolate-siblings", "off"}})[0].reason,
            "topolet.io/smt = isolate has no effect: isolate-siblings = off");
  EXPECT_EQ(score(kHeavy, 1)[0].reason, "topolet.io/cpu-profile has no effect: pair = false");
}

TEST_F(SmtTest, DeniesUnknownAnnotationValues) {
  const std::vector<std::pair<Container, std::string>> cases = {
      {{.settings = {{"smt", "of\nf"}}}, "annotation topolet.io/smt = 'of?f': it must be one of 'isolate', 'share'"},
      {{.settings = {{"smt", ""}}}, "annotation topolet.io/smt = '': it must be one of 'isolate', 'share'"},
      {{.settings = {{"cpu-profile", "Heavy"}}},
       "annotation topolet.io/cpu-profile = 'Heavy': it must be one of 'heavy', 'light'"}};
  for (const auto& [container, reason] : cases) {
    for (const PluginVerdict& verdict : score(container, 1)) {
      EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_REJECT);
      EXPECT_EQ(verdict.reason, reason);
    }
  }
}

TEST_F(SmtTest, KeepsTheRestOfTheLastCoreIdleUnderFullPcpusOnly) {
  const PluginPicked beside = pick({}, 3, {}, kFullPcpusOnly, set_of({0, 1, 2}));
  EXPECT_EQ(beside.withhold.to_string(), "3");
  EXPECT_EQ(beside.reason, "CPU 3 is kept idle (numa.full-pcpus-only, smt.round = idle-sibling)");
  EXPECT_TRUE(pick({}, 3, {{"round", "deny"}}, kFullPcpusOnly, set_of({0, 1, 2})).withhold.empty());
}

TEST_F(SmtTest, GivesWholeCoresUnderFullPcpusOnly) {
  ledger_.reserve(set_of({0})).place_exclusive({}, set_of({3}));
  EXPECT_EQ(pick({}, 2, {}, kFullPcpusOnly).narrow.to_string(), "4-7");
  const auto verdicts = score({}, 2, {}, kFullPcpusOnly);
  EXPECT_EQ(verdicts[0].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdicts[0].reason,
            "node 0 has 0 CPUs on free whole cores, too few for the 2 requested (numa.full-pcpus-only)");
  EXPECT_EQ(verdicts[1].kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(SmtTest, DeniesWhatCannotBeRoundedUpInTheKubeletsWords) {
  ledger_.place_exclusive({}, set_of({1, 3, 5}));
  for (const PluginVerdict& verdict : score({}, 3, {}, kFullPcpusOnly)) {
    EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_REJECT);
    EXPECT_THAT(verdict.reason, HasSubstr("SMT Alignment Error: not enough free physical CPUs: available physical CPUs "
                                          "= 2, requested CPUs = 3, CPUs per core = 2"));
  }
  EXPECT_THAT(score({}, 4, {}, kFullPcpusOnly), Each(Field(&PluginVerdict::kind, TOPOLET_VERDICT_ABSTAIN)))
      << "the kubelet takes what there is, if only it could fill cores";
}

class PairTest : public SmtTest {
 protected:
  const Plugin::Values pair_ = {{"pair", "true"}};
};

TEST_F(PairTest, GivesHeavyContainersOneThreadOfACore) {
  EXPECT_EQ(pick(kHeavy, 2, pair_).narrow.to_string(), "0,2,4,6");
  EXPECT_EQ(pick(kHeavy, 0, pair_).narrow.to_string(), "0,2,4,6");
}

TEST_F(PairTest, TakesTwoThreadsOfACoreRatherThanOneBesideAnotherHeavyContainer) {
  ledger_.place_exclusive(kHeavy, set_of({0, 2}));
  EXPECT_EQ(pick(kHeavy, 2, pair_).narrow.to_string(), "4,6");
  EXPECT_EQ(pick(kHeavy, 3, pair_).narrow.to_string(), "4-6");
  EXPECT_EQ(pick(kHeavy, 5, pair_).narrow.to_string(), "1,4-7");
}

TEST_F(PairTest, PutsLightContainersBesideHeavyOnes) {
  ledger_.place_exclusive(kHeavy, set_of({2, 4}));
  EXPECT_EQ(pick(kLight, 1, pair_).narrow.to_string(), "3,5");
  EXPECT_EQ(pick(kLight, 3, pair_).narrow.to_string(), "1,3,5");
  const auto verdicts = score(kLight, 1, pair_);
  EXPECT_EQ(verdicts[0].reason, "node 0: 1 CPU beside heavy containers");
  EXPECT_EQ(score(kLight, 2, pair_)[0].reason, "node 0: 1 CPU beside heavy containers, 1 CPU on cores without one");
}

TEST_F(PairTest, KeepsSharedLightContainersOffTheThreadsOfHeavyOnes) {
  EXPECT_EQ(pick(kLight, 0, pair_).narrow.to_string(), "1,3,5,7") << "even before there are heavy ones";
  ledger_.place_shared(kHeavy, set_of({1, 3})).place_exclusive(kHeavy, set_of({4}));
  EXPECT_EQ(pick(kLight, 0, pair_).narrow.to_string(), "0,2,5,7");
}

TEST_F(PairTest, SaysWhatSharedContainersMeet) {
  EXPECT_EQ(score(kHeavy, 0, pair_)[0].reason, "node 0: 1 core with a thread for heavy containers to share");
  EXPECT_EQ(score(kLight, 0, pair_)[0].reason, "node 0: sibling threads of the CPUs that heavy containers share");
  ledger_.place_shared(kHeavy, set_of({0, 1, 2, 3}));
  EXPECT_EQ(score(kLight, 0, pair_)[0].reason, "node 0: 1 CPU that a heavy container shares");
}

TEST_F(PairTest, LetsSharedHeavyContainersTakeTurnsOnTheSameThreads) {
  ledger_.place_shared(kHeavy, set_of({1, 3})).place_exclusive(kHeavy, set_of({4}));
  EXPECT_EQ(pick(kHeavy, 0, pair_).narrow.to_string(), "1,3,6");
  EXPECT_EQ(pick(kHeavy, 1, pair_).narrow.to_string(), "1,3,6") << "one of its own drives them off";
}

TEST_F(PairTest, GivesSharedContainersWhatTheyAskFor) {
  ledger_.place_shared({.cpu_request_milli = 2500, .settings = {{"cpu-profile", "heavy"}}}, set_of({0, 2, 4, 6}));
  Container asks = kHeavy;
  asks.cpu_request_milli = 1500;
  EXPECT_EQ(pick(asks, 0, pair_).narrow.to_string(), "0,2,4,6");
  asks.cpu_request_milli = 2000;
  EXPECT_FALSE(pick(asks, 0, pair_).narrowed) << "5 CPUs are asked for, there are 4 cores";
}

TEST_F(PairTest, PrefersPlacesWhereNoHeavyContainersMeet) {
  ledger_.place_exclusive(kHeavy, set_of({0, 2})).place_exclusive({}, set_of({4, 5}));
  const auto verdicts = score(kHeavy, 2, pair_);
  EXPECT_EQ(verdicts[0].score, 0);
  EXPECT_EQ(verdicts[0].reason,
            "node 0: 0 cores without another heavy container, 2 CPUs beside another heavy container");
  EXPECT_EQ(verdicts[1].score, 78);
  EXPECT_EQ(verdicts[1].reason, "node 1: 1 core without another heavy container, 1 sibling thread of the same cores");
}

TEST_F(PairTest, IsolatesHeavyContainersOnOneThreadOfACoreIfThereAreEnough) {
  const Container both = {.settings = {{"cpu-profile", "heavy"}, {"smt", "isolate"}}};
  EXPECT_EQ(pick(both, 2, pair_).narrow.to_string(), "0,2,4,6");
  EXPECT_EQ(pick(both, 2, pair_, {}, set_of({0, 2})).withhold.to_string(), "1,3");
  EXPECT_FALSE(pick(both, 5, pair_).narrowed);
}

TEST_F(PairTest, KeepsOthersOffTheCoresOfHeavyContainersWhileThereAreEnoughElse) {
  EXPECT_FALSE(pick({}, 2, pair_).narrowed) << "there is no heavy one";
  ledger_.place_exclusive(kHeavy, set_of({0}));
  EXPECT_EQ(pick({}, 2, pair_).narrow.to_string(), "2-7");
  EXPECT_EQ(pick({}, 6, pair_).narrow.to_string(), "2-7");
  EXPECT_FALSE(pick({}, 7, pair_).narrowed);
  EXPECT_FALSE(pick({}, 2).narrowed) << "pair = false";
}

TEST_F(PairTest, KeepsOthersThatShareCpusOffTheCoresOfHeavyContainers) {
  ledger_.place_exclusive(kHeavy, set_of({0}));
  EXPECT_FALSE(pick({}, 0, pair_).narrowed) << "it requests nothing";
  const Container asks = {.cpu_request_milli = 1500};
  EXPECT_EQ(pick(asks, 0, pair_).narrow.to_string(), "2-7");
  ledger_.place_shared({.cpu_request_milli = 3500}, set_of({2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(pick(asks, 0, pair_).narrow.to_string(), "2-7");
  ledger_.place_shared({.cpu_request_milli = 1100, .settings = kLight.settings}, set_of({1, 2}));
  EXPECT_FALSE(pick(asks, 0, pair_).narrowed) << "they request 6.1 CPUs together";
}

TEST_F(PairTest, PrefersPlacesWithoutHeavyContainersForOthers) {
  ledger_.place_exclusive(kHeavy, set_of({0}));
  const auto verdicts = score({}, 3, pair_);
  EXPECT_EQ(verdicts[0].score, -6);
  EXPECT_EQ(verdicts[0].reason, "node 0: 2 CPUs on cores without a heavy container, 1 CPU beside heavy containers");
  EXPECT_EQ(verdicts[1].score, 0);
  EXPECT_EQ(verdicts[2].score, 0);
  EXPECT_THAT(score({}, 2, pair_), Each(Field(&PluginVerdict::reason, ""))) << "each has room";
  ledger_.place_exclusive(kHeavy, set_of({3, 4, 7}));
  EXPECT_THAT(score({}, 1, pair_), Each(Field(&PluginVerdict::kind, TOPOLET_VERDICT_ABSTAIN))) << "all are alike";
}

TEST(SmtOff, KeepsSharedContainersTogether) {
  const Machine machine("numa:1 core:4 pu:1");
  Ledger ledger(machine);
  ledger.place_shared(kHeavy, set_of({0, 1, 2}));
  FakeHost host;
  Plugin plugin(topolet_plugin_v1, host, {{"pair", "true"}});
  EXPECT_FALSE(plugin.pick(Request(machine, ledger, kLight, 0), 0).narrowed);
}

TEST_F(SmtTest, SaysThatItDeniesNoRoundingWhereCpusAreNotHandedOutAsWholeCores) {
  const Plugin whole_cores(topolet_plugin_v1, host_, {{"round", "deny"}}, {{"numa.full-pcpus-only", "true"}});
  EXPECT_THAT(host_.log, IsEmpty());
  const Plugin without(topolet_plugin_v1, host_, {{"round", "deny"}});
  EXPECT_THAT(host_.log, ElementsAre(HasSubstr("round = deny has no effect without numa.full-pcpus-only")));
}

TEST_F(SmtTest, OrdersNothing) {
  Plugin plugin(topolet_plugin_v1, host_);
  const PluginPicked picked = plugin.order(Request(machine_, ledger_, kIsolated, 1), 0);
  EXPECT_TRUE(picked.order.empty() && !picked.narrowed && picked.withhold.empty());
}

TEST(SmtOff, ChangesNothing) {
  const Machine machine("numa:1 core:4 pu:1");
  const Ledger ledger(machine);
  FakeHost host;
  Plugin plugin(topolet_plugin_v1, host, {{"pair", "true"}});
  for (const Container& container : {kIsolated, kHeavy, kLight, Container()}) {
    for (const std::uint32_t cpus : {0U, 3U}) {
      Request request(machine, ledger, container, cpus);
      request.flags(kFullPcpusOnly);
      EXPECT_FALSE(plugin.pick(request, 0).narrowed);
      const auto beside = plugin.pick(request, 0, set_of({0, 1, 2}));
      EXPECT_TRUE(beside.withhold.empty() && beside.unmet.empty());
      EXPECT_EQ(plugin.score(request)[0].kind, TOPOLET_VERDICT_ABSTAIN);
    }
  }
}

TEST(SmtManyThreads, IsolatesAllSiblingsOfFourAndEight) {
  for (const std::uint32_t threads : {4U, 8U}) {
    const Machine machine("numa:1 core:2 pu:" + std::to_string(threads));
    const Ledger ledger(machine);
    FakeHost host;
    Plugin plugin(topolet_plugin_v1, host);
    const Request request(machine, ledger, kIsolated, 2);
    EXPECT_EQ(plugin.pick(request, 0, set_of({0, 1})).withhold.size(), threads - 2);
  }
}

}  // namespace
}  // namespace topolet::smt
