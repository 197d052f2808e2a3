#include "plugins/load/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include "tests/plugins/load/loads.hpp"

namespace topolet::load_policy {
namespace {

using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using Said = sdk::testing::Verdict;

const Plugin::Values kNone;
const Plugin::Values kTakers = {{"placement.exclusive-namespaces", "trusted, team-*"}};

/// Two nodes of two cores of two threads; a and b share node 0 and 1. A request for one CPU.
class LoadPolicyTest : public ::testing::Test {
 protected:
  LoadPolicyTest() {
    ledger_.place_shared({.pod_uid = "a"}, set_of({0, 1, 2, 3}));
    ledger_.place_shared({.pod_uid = "b"}, set_of({4, 5, 6, 7}));
  }
  std::vector<Said> score(const topolet_load* load, const Container& container = kOneCpu, std::uint32_t cpus = 0) {
    Plugin plugin(topolet_plugin_v1, host_, kNone, kTakers);
    Request request(machine_, ledger_, container, cpus);
    if (load != nullptr) request.load(*load);
    return plugin.score(request);
  }
  sdk::testing::Picked pick(const Container& container, std::uint32_t cpus, const topolet_load* load,
                            const sdk::Set& chosen = {}) {
    Plugin plugin(topolet_plugin_v1, host_, kNone, kTakers);
    Request request(machine_, ledger_, container, cpus);
    if (load != nullptr) request.load(*load);
    return plugin.pick(request, request.view().candidate_count - 1, chosen);
  }

  static inline const Container kOneCpu = {.pod_uid = "new", .cpu_request_milli = 1000};
  Machine machine_{"numa:2 core:2 pu:2"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

void expect_abstains(const std::vector<Said>& said, const std::string& why) {
  EXPECT_THAT(said, Each(Field(&Said::kind, TOPOLET_VERDICT_ABSTAIN)));
  EXPECT_THAT(said, Each(Field(&Said::reason, why)));
  EXPECT_THAT(said, Each(Field(&Said::code, "not-measured")));
}

TEST_F(LoadPolicyTest, AbstainsAndSaysSoWhereNothingIsMeasured) {
  expect_abstains(score(nullptr), "no load is measured");
  const Loads unknown({{-1, -1}, {-1, -1}}, {not_measured(), not_measured()});
  expect_abstains(score(&unknown.view()), "no load is measured");
}

TEST_F(LoadPolicyTest, AbstainsWhereAllIsTooOld) {
  const Loads old({{4000, 5001}, {4000, 5001}}, {used(100, 6000), used(100, 6000)});
  expect_abstains(score(&old.view()), "the measured load is older than 5 s");
}

TEST_F(LoadPolicyTest, AbstainsInTheFirstMinute) {
  const Loads young({{4000, 0}, {4000, 0}}, {used(100), used(100)}, 59999);
  expect_abstains(score(&young.view()), "load has been measured for 59 s only, of 60 that it takes");
}

TEST_F(LoadPolicyTest, AbstainsWhereAHypervisorMayTakeTimeAndDoesNotTell) {
  const Loads unknown({{4000, 0}, {-1, -1}}, {used(100), used(3000)});
  expect_abstains(score(&unknown.view()),
                  "what the CPUs of node 1 can do is not known: no steal is reported, and there may be a hypervisor");
  const Loads old({{4000, 0}, {4000, 5001}}, {used(100), used(3000)});
  EXPECT_EQ(score(&old.view()).at(0).kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(LoadPolicyTest, PrefersTheNodeOfWhichLessIsUsed) {
  const Loads loads({{4000, 0}, {4000, 0}}, {used(3000), used(1000)}, 60000);
  const std::vector<Said> said = score(&loads.view());
  EXPECT_EQ(said.at(0).score, -12) << "nothing would be left";
  EXPECT_EQ(said.at(1).score, -6);
  EXPECT_EQ(said.at(2).score, -8) << "5 of the 8 of both";
  EXPECT_EQ(said.at(0).reason, "3.00 of 4.00 shared CPUs here are used");
  EXPECT_EQ(said.at(0).code, "used");
}

TEST_F(LoadPolicyTest, CountsWhatTheCpusCanDo) {
  const Loads loads({{2000, 0}, {4000, 0}}, {used(1000), used(1000)});
  const std::vector<Said> said = score(&loads.view());
  EXPECT_EQ(said.at(0).score, -12);
  EXPECT_EQ(said.at(1).score, -6);
  EXPECT_EQ(said.at(0).reason, "1.00 of 2.00 shared CPUs here are used");
}

TEST_F(LoadPolicyTest, CountsWhatOthersThanContainersUse) {
  const Loads loads({{4000, 0, 2000}, {4000, 0, 900}}, {used(1000), used(1000)});
  const std::vector<Said> said = score(&loads.view());
  EXPECT_EQ(said.at(0).score, -9) << "processes of the system use a CPU of node 0";
  EXPECT_EQ(said.at(0).reason, "2.00 of 4.00 shared CPUs here are used");
  EXPECT_EQ(said.at(1).score, -6) << "the container of node 1 uses more than was seen of the node";
  const Loads old({{4000, 5001, 2000}, {4000, 0, 900}}, {used(1000), used(1000)});
  EXPECT_EQ(score(&old.view()).at(0).kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(LoadPolicyTest, CountsNoneOfThePoolThatWhoHasCpusAloneUses) {
  ledger_.place_exclusive({.pod_uid = "own"}, set_of({0, 1})).entry_flags(TOPOLET_ENTRY_STARTED);
  const Loads loads({{4000, 0, 3500}, {4000, 0}}, {used(500), used(0), used(2000)});
  EXPECT_EQ(score(&loads.view()).at(0).reason, "1.50 of 2.00 shared CPUs here are used");
  const Loads unknown({{4000, 0, 3500}, {4000, 0}}, {used(500), used(0), not_measured()});
  EXPECT_EQ(score(&unknown.view()).at(0).reason, "0.50 of 2.00 shared CPUs here are used")
      << "nobody knows how much of it is the exclusive container's";
}

TEST_F(LoadPolicyTest, OneThatIsNotMeasuredIsPartOfWhatIsUsedOfItsNode) {
  ledger_.place_shared({.pod_uid = "c", .cpu_request_milli = 2000}, set_of({4, 5, 6, 7}));
  const Loads loads({{4000, 0, 0}, {4000, 0, 1500}}, {used(0), used(0), not_measured()});
  EXPECT_EQ(score(&loads.view()).at(1).reason,
            "2.00 of 4.00 shared CPUs here are used, 0.50 of it by 1 container not measured yet");
}

TEST_F(LoadPolicyTest, TakesAContainerThatIsNotMeasuredForWhatItRequests) {
  ledger_.place_shared({.pod_uid = "c", .cpu_request_milli = 2000}, set_of({4, 5, 6, 7}));
  ledger_.place_shared({.pod_uid = "d", .qos = TOPOLET_QOS_BESTEFFORT}, set_of({0, 1, 2, 3}));
  const Loads loads({{4000, 0}, {4000, 0}}, {used(0), used(0), not_measured(), used(0, 6000)});
  const std::vector<Said> said = score(&loads.view());
  EXPECT_EQ(said.at(0).score, -6) << "one CPU for one that requests none";
  EXPECT_EQ(said.at(1).score, -9);
  EXPECT_EQ(said.at(1).reason, "2.00 of 4.00 shared CPUs here are used, 2.00 of it by 1 container not measured yet");
}

TEST_F(LoadPolicyTest, KeepsOffCoresWhereOthersAreBusy) {
  ledger_.place_exclusive({.pod_uid = "x"}, set_of({0})).place_exclusive({.pod_uid = "y"}, set_of({2}));
  const Loads loads({}, {used(0), used(0), used(900), used(100)});
  const sdk::testing::Picked picked = pick({}, 1, &loads.view());
  EXPECT_EQ(picked.narrow.to_string(), "3-7") << "CPU 1 is beside a busy one, CPU 3 beside a calm one";
  EXPECT_EQ(picked.reason, "keeps off CPU 1: on the same cores others keep their CPUs busy");
  EXPECT_FALSE(pick({}, 6, &loads.view()).narrowed) << "there are not enough others";
  EXPECT_FALSE(pick({}, 1, nullptr).narrowed);
}

TEST_F(LoadPolicyTest, TellsWhichNodesHaveCalmCores) {
  ledger_.place_exclusive({.pod_uid = "x"}, set_of({0, 2}));
  const Loads loads({{4000, 0}, {3000, 0}}, {used(0), used(0), used(1900)});
  const std::vector<Said> said = score(&loads.view(), {}, 2);
  EXPECT_EQ(said.at(0).score, -6);
  EXPECT_EQ(said.at(0).reason, "2 of its CPUs would be beside busy ones");
  EXPECT_EQ(said.at(1).score, -3) << "a quarter of what they could do is taken from them";
  EXPECT_EQ(said.at(1).reason, "no CPU would be beside a busy one, and CPUs here can do 3.00 of 4.00");
}

TEST_F(LoadPolicyTest, KeepsTheRestOfTheLastCoreIdleForLse) {
  const Container lse = {.pod_uid = "e", .pod_namespace = "trusted", .settings = {{"class", "LSE"}}};
  EXPECT_FALSE(pick(lse, 3, nullptr).narrowed) << "all cores are whole";
  const sdk::testing::Picked beside = pick(lse, 3, nullptr, set_of({0, 1, 2}));
  EXPECT_EQ(beside.withhold.to_string(), "3");
  EXPECT_EQ(beside.reason, "CPU 3 is kept idle (class LSE)");
  ledger_.place_exclusive({.pod_uid = "x"}, set_of({0}));
  EXPECT_EQ(pick(lse, 3, nullptr).narrow.to_string(), "2-7");
}

TEST_F(LoadPolicyTest, WithholdsNoMoreForLseThanItsRequestPaysFor) {
  const Container lse = {.pod_uid = "e", .pod_namespace = "team-1", .settings = {{"class", "LSE"}}};
  const sdk::testing::Picked beside = pick(lse, 2, nullptr, set_of({0, 2}));
  EXPECT_TRUE(beside.withhold.empty());
  EXPECT_EQ(beside.unmet, "class LSE: its request pays for idle siblings on one core, not for CPUs 1,3");
  ledger_.place_exclusive({.pod_uid = "x"}, set_of({1}));
  EXPECT_EQ(pick(lse, 1, nullptr, set_of({0})).unmet,
            "class LSE: CPU 1 cannot be kept idle: reserved or used by others");
}

TEST_F(LoadPolicyTest, ReadsLseAsLsWhereNobodyMayTakeMore) {
  const Container label = {
      .pod_uid = "e", .pod_namespace = "other", .pod_labels = {{"koordinator.sh/qosClass", "LSE"}}};
  const Container left_out = {
      .pod_uid = "e", .pod_namespace = "other", .pod_annotations = {{"topolet.io/class", "LSR"}}};
  const Loads loads({{4000, 0}, {4000, 0}}, {used(0), used(0)});
  for (const auto& [container, where, name] :
       {std::tuple(label, "koordinator.sh/qosClass", "LSE"), std::tuple(left_out, "topolet.io/class", "LSR")}) {
    EXPECT_TRUE(pick(container, 3, nullptr, set_of({0, 1, 2})).withhold.empty());
    EXPECT_THAT(score(&loads.view(), container).at(0).reason,
                HasSubstr(std::string(where) + " = '" + name +
                          "' reads as LS: namespace other is none of placement.exclusive-namespaces"));
    EXPECT_EQ(score(nullptr, container).at(0).code, "class");
  }
}

TEST(Classes, AreReadFromAnnotationLabelAndQos) {
  const auto read = [](const Container& container) {
    const sdk::testing::Workload workload(container);
    return class_of(source_of(workload.view()), {"trusted"});
  };
  EXPECT_EQ(read({}).which, Class::kLs);
  EXPECT_EQ(read({.qos = TOPOLET_QOS_BESTEFFORT}).which, Class::kBe);
  EXPECT_EQ(read({.settings = {{"class", "BE"}}}).which, Class::kBe);
  EXPECT_EQ(read({.pod_labels = {{"koordinator.sh/qosClass", "BE"}}}).which, Class::kBe);
  EXPECT_EQ(read({.pod_labels = {{"koordinator.sh/qosClass", "SYSTEM"}}}).which, Class::kLs);
  EXPECT_EQ(read({.pod_namespace = "trusted", .pod_labels = {{"koordinator.sh/qosClass", "LSR"}}}).which, Class::kLsr);
  EXPECT_EQ(read({.pod_labels = {{"koordinator.sh/qosClass", "BE"}}, .settings = {{"class", "LS"}}}).which, Class::kLs)
      << "the annotation comes first";
  const ClassWord wrong = read({.settings = {{"class", "GOLD"}}});
  EXPECT_EQ(wrong.which, Class::kLs);
  EXPECT_EQ(wrong.error, "topolet.io/class = 'GOLD': it must be one of 'LSE', 'LSR', 'LS', 'BE'");
}

}  // namespace
}  // namespace topolet::load_policy
