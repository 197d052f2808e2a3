#include "core/plugin/call/plugin_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "core/base/log.hpp"
#include "core/plugin/guard/barrier.hpp"
#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::SizeIs;

std::shared_ptr<PluginPolicy> nonsense(const std::string& answer) {
  return start_plugin(TOPOLET_BROKEN_DIR, "nonsense", {{"answer", answer}});
}

Error score_error(const std::string& answer) {
  const auto policy = nonsense(answer);
  const auto verdicts = policy->score(abi_view(*two_node_request()));
  return verdicts ? Error{Code::kOk, "answered"} : verdicts.error();
}

Error pick_error(const std::string& answer) {
  const auto policy = nonsense(answer);
  const auto pick = policy->pick(abi_view(*two_node_request()), 0, CpuSet{0, 1, 2, 3}, 2);
  return pick ? Error{Code::kOk, "answered"} : pick.error();
}

/// As `two_node_request`, with memory on the second node as well.
std::shared_ptr<placement::PolicyRequest> request_on_equal_nodes() {
  auto request = two_node_request();
  topology::Topology machine = *request->topology;
  machine.nodes[1].memory_bytes = machine.nodes[0].memory_bytes;
  request->topology = std::make_shared<const topology::Topology>(std::move(machine));
  request->ledger.pool.erase(0);
  return request;
}

TEST(PluginPolicy, GivesNumasVerdictsOnEveryCandidate) {
  const auto numa = start_plugin(TOPOLET_BUILT_PLUGINS, "numa");
  ASSERT_NE(numa, nullptr);
  EXPECT_THAT(numa->capabilities(), ElementsAre("topolet.score/1", "topolet.propose/1", "topolet.pick/1",
                                                "topolet.adjust/1", "topolet.annotations/1", "topolet.reads/1"));
  const auto request = request_on_equal_nodes();
  const auto verdicts = numa->score(abi_view(*request));
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  ASSERT_THAT(*verdicts, SizeIs(3));
  EXPECT_EQ((*verdicts)[0],
            (placement::Verdict{placement::Verdict::Kind::kScore, 100, "all 2 CPUs requested fit on node 0 (3 free)"}));
  EXPECT_EQ((*verdicts)[1].score, 99) << (*verdicts)[1].reason;
  EXPECT_EQ((*verdicts)[2].score, 70);
}

TEST(PluginPolicy, KnowsWhichAnnotationsAPluginReads) {
  const auto read = [](const char* dir, const char* plugin, const OptionValues& options = {}) {
    return start_plugin(dir, plugin, options)->annotations();
  };
  EXPECT_THAT(read(TOPOLET_BUILT_PLUGINS, "numa"), Optional(ElementsAre("numa-policy")));
  EXPECT_THAT(read(TOPOLET_BUILT_PLUGINS, "smt"), Optional(ElementsAre("smt", "cpu-profile")));
  EXPECT_THAT(read(TOPOLET_BUILT_PLUGINS, "gpu"), Optional(ElementsAre()));
  EXPECT_THAT(read(TOPOLET_BROKEN_DIR, "annotated"), Optional(ElementsAre("tenant")));
  EXPECT_THAT(read(TOPOLET_BROKEN_DIR, "annotated", {{"names", "longest"}}), Optional(SizeIs(2)));
  EXPECT_THAT(read(TOPOLET_BROKEN_DIR, "annotated", {{"names", "none"}}), Optional(ElementsAre()));
  EXPECT_EQ(read(TOPOLET_BROKEN_DIR, "annotated", {{"names", "unsaid"}}), std::nullopt);
  EXPECT_EQ(read(TOPOLET_BROKEN_DIR, "throws"), std::nullopt);
}

TEST(PluginPolicy, KnowsWhatElseAPluginReads) {
  const auto gpu =
      start_plugin(TOPOLET_BUILT_PLUGINS, "gpu", {{"devices", "fpga: path=/dev/fpga* env=FPGA_*_DEVICES"}});
  EXPECT_THAT(gpu->names_read().env, ::testing::IsSupersetOf({"NVIDIA_VISIBLE_DEVICES", "FPGA_*_DEVICES"}));
  EXPECT_THAT(gpu->names_read().annotations, ElementsAre("cdi.k8s.io/*"));
  EXPECT_THAT(start_plugin(TOPOLET_BUILT_PLUGINS, "numa")->names_read().env, ElementsAre());
}

TEST(PluginPolicy, KnowsWhichAnnotationsTakeMoreThanIsRequested) {
  const auto taking = [](const char* dir, const char* plugin, const OptionValues& options = {}) {
    return start_plugin(dir, plugin, options)->taking_annotations();
  };
  EXPECT_THAT(taking(TOPOLET_BUILT_PLUGINS, "smt"), ElementsAre(placement::TakingAnnotation{"smt", "isolate"}));
  EXPECT_THAT(taking(TOPOLET_BUILT_PLUGINS, "numa"), ElementsAre());
  EXPECT_THAT(taking(TOPOLET_BROKEN_DIR, "annotated", {{"names", "taking"}}),
              ElementsAre(placement::TakingAnnotation{"tenant", ""}));
  EXPECT_THAT(taking(TOPOLET_BROKEN_DIR, "annotated", {{"names", "before-taking"}}), ElementsAre())
      << "it was built when the struct ended before";
  EXPECT_THAT(taking(TOPOLET_BROKEN_DIR, "throws"), ElementsAre());
}

TEST(PluginPolicy, LoadsThePluginsThatHaveNoOpinionOnMostContainers) {
  const auto gpu = start_plugin(TOPOLET_BUILT_PLUGINS, "gpu");
  const auto smt = start_plugin(TOPOLET_BUILT_PLUGINS, "smt");
  ASSERT_TRUE(gpu != nullptr && smt != nullptr);
  EXPECT_THAT(gpu->capabilities(),
              ElementsAre("topolet.score/1", "topolet.propose/1", "topolet.pick/1", "topolet.adjust/1",
                          "topolet.tick/1", "topolet.annotations/1", "topolet.reads/1"));
  EXPECT_THAT(smt->capabilities(),
              ElementsAre("topolet.score/1", "topolet.propose/1", "topolet.pick/1", "topolet.adjust/1",
                          "topolet.tick/1", "topolet.annotations/1", "topolet.reads/1"));
  const auto request = two_node_request();
  for (const auto& plugin : {gpu, smt}) {
    const auto verdicts = plugin->score(abi_view(*request));
    ASSERT_TRUE(verdicts) << verdicts.error().message;
    for (const placement::Verdict& verdict : *verdicts) EXPECT_EQ(verdict.kind, placement::Verdict::Kind::kAbstain);
    const auto pick = plugin->pick(abi_view(*request), 0, CpuSet{0, 1}, 2);
    ASSERT_TRUE(pick) << pick.error().message;
    EXPECT_TRUE(pick->withhold.empty());
    const auto adjustment =
        plugin->adjust(abi_view(*request), {0, {placement::Mode::kExclusive, CpuSet{0, 1}, {}, {}, {}}, NodeSet{0}});
    ASSERT_TRUE(adjustment) << adjustment.error().message;
    EXPECT_FALSE(adjustment->mems.has_value());
  }
}

TEST(PluginPolicy, AsksWhatToWithholdOnceCpusAreChosen) {
  const auto smt = start_plugin(TOPOLET_BUILT_PLUGINS, "smt", {{"isolate-siblings", "exclusive"}});
  const auto request = two_node_request();
  const auto before = smt->pick(abi_view(*request), 0, CpuSet{0, 1, 2, 3}, request->exclusive_cpus);
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_TRUE(before->withhold.empty());
  const auto beside =
      smt->pick(abi_view(*request), 0, CpuSet{0, 1, 2, 3}, request->exclusive_cpus, TOPOLET_PICK_REVIEW, CpuSet{0, 2});
  ASSERT_TRUE(beside) << beside.error().message;
  EXPECT_EQ(beside->withhold, (CpuSet{1, 3}));
  const auto cannot =
      smt->pick(abi_view(*request), 0, CpuSet{0, 2, 3}, request->exclusive_cpus, TOPOLET_PICK_REVIEW, CpuSet{0, 2});
  ASSERT_TRUE(cannot) << cannot.error().message;
  EXPECT_EQ(cannot->unmet,
            "CPU 1 cannot be kept idle beside CPUs 0,2: reserved or used by others (isolate-siblings = exclusive)");
}

TEST(PluginPolicy, HandsOptionsToThePlugin) {
  const auto numa = start_plugin(TOPOLET_BUILT_PLUGINS, "numa", {{"strategy", "spread"}});
  const auto request = request_on_equal_nodes();
  const auto verdicts = numa->score(abi_view(*request));
  ASSERT_TRUE(verdicts);
  EXPECT_EQ((*verdicts)[0].score, 99);
  EXPECT_EQ((*verdicts)[1].score, 100);
}

TEST(PluginPolicy, GivesNumasOrderOfCpus) {
  const auto numa = start_plugin(TOPOLET_BUILT_PLUGINS, "numa");
  const auto pick = numa->pick(abi_view(*two_node_request()), 0, CpuSet{1, 2, 3}, 2, TOPOLET_PICK_ORDER);
  ASSERT_TRUE(pick) << pick.error().message;
  EXPECT_THAT(pick->order, ElementsAre(2, 3, 1));
  EXPECT_EQ(pick->reason, "1 whole core");
  EXPECT_FALSE(pick->narrow.has_value());
}

TEST(PluginPolicy, AbstainsWhereThePluginSaysNothing) {
  const auto numa = start_plugin(TOPOLET_BUILT_PLUGINS, "numa");
  const auto request = two_node_request();
  request->exclusive = false;
  request->exclusive_cpus = 0;
  const auto verdicts = numa->score(abi_view(*request));
  ASSERT_TRUE(verdicts);
  EXPECT_EQ(*verdicts, std::vector<placement::Verdict>(3));
}

TEST(PluginPolicy, StopsExceptionsOfAnyType) {
  const auto throws = start_plugin(TOPOLET_BROKEN_DIR, "throws");
  const auto verdicts = throws->score(abi_view(*two_node_request()));
  ASSERT_FALSE(verdicts);
  EXPECT_EQ(verdicts.error(), (Error{Code::kInternal, "throws: score threw: index 7 of 4"}));
  const auto pick = throws->pick(abi_view(*two_node_request()), 0, CpuSet{0}, 1);
  ASSERT_FALSE(pick);
  EXPECT_EQ(pick.error(), (Error{Code::kInternal, "throws: pick threw something that is not a std::exception"}));
}

TEST(PluginPolicy, RefusesScoresThatMakeNoSense) {
  const std::string begin = "nonsense: score gave an invalid answer: ";
  EXPECT_EQ(score_error("score-too-high"),
            (Error{Code::kInternal, begin + "the score 101 on candidate 0 is not between -100 and 100"}));
  EXPECT_EQ(score_error("score-too-low").message, begin + "the score -101 on candidate 0 is not between -100 and 100");
  EXPECT_EQ(score_error("unknown-candidate").message, begin + "a verdict on candidate 3, but there are only 3");
  EXPECT_EQ(score_error("twice").message, begin + "two verdicts on candidate 0");
}

TEST(PluginPolicy, TellsAVoteGivenUpFromMisbehaviour) {
  EXPECT_EQ(score_error("fails"), (Error{Code::kUnavailable, "nonsense: score failed: because"}));
  EXPECT_EQ(score_error("odd-status").code, Code::kInternal);
}

TEST(PluginPolicy, RefusesPicksThatCannotBeRead) {
  const std::string begin = "nonsense: pick gave an invalid answer: ";
  EXPECT_EQ(pick_error("huge-set"),
            (Error{Code::kInternal, begin + "narrow has 2000 words; the highest index is 65535"}));
  EXPECT_EQ(pick_error("null-set").message, begin + "withhold is a null pointer");
  EXPECT_EQ(pick_error("two-narrowings").message, begin + "narrow is set twice");
  EXPECT_EQ(pick_error("two-withholdings").message, begin + "withhold is set twice");
  EXPECT_EQ(pick_error("order-far").message, begin + "order names CPU 70000");
  EXPECT_EQ(pick_error("order-twice").message, begin + "order names CPU 1 twice");
  EXPECT_EQ(pick_error("endless-shares").message, begin + "at_least is set more than 1024 times");
  EXPECT_EQ(pick_error("rejects-silently").message, begin + "reject has no reason");
}

TEST(PluginPolicy, HearsProposalsAndRefusesTooMany) {
  const auto proposals = nonsense("proposes")->propose(abi_view(*two_node_request()));
  ASSERT_TRUE(proposals) << proposals.error().message;
  EXPECT_THAT(*proposals, ElementsAre(NodeSet{0, 1}));
  const auto error_of = [](const char* answer) {
    const auto refused = nonsense(answer)->propose(abi_view(*two_node_request()));
    return refused ? std::string("answered") : refused.error().message;
  };
  const std::string begin = "nonsense: propose gave an invalid answer: ";
  EXPECT_EQ(error_of("proposes-nothing"), begin + "a proposal has no nodes");
  EXPECT_EQ(error_of("proposes-on-and-on"), begin + "more than 8 proposals");
}

TEST(PluginPolicy, HearsSharesAndRejections) {
  const auto shares = nonsense("shares")->pick(abi_view(*two_node_request()), 0, CpuSet{0, 1}, 2);
  ASSERT_TRUE(shares) << shares.error().message;
  ASSERT_THAT(shares->at_least, SizeIs(2));
  EXPECT_EQ(shares->at_least[0].cpus, CpuSet{0});
  EXPECT_EQ(shares->at_least[0].count, 1U);
  EXPECT_EQ(shares->at_least[1].count, 2U);
  const auto rejection = nonsense("rejects")->pick(abi_view(*two_node_request()), 0, CpuSet{0, 1}, 2);
  ASSERT_TRUE(rejection) << rejection.error().message;
  EXPECT_EQ(rejection->rejected, "not these");
}

TEST(PluginPolicy, LeavesForeignSetsToTheCore) {
  const auto pick = nonsense("foreign-set")->pick(abi_view(*two_node_request()), 0, CpuSet{2}, 1);
  ASSERT_TRUE(pick) << pick.error().message;
  EXPECT_EQ(pick->narrow, CpuSet{0});
}

TEST(PluginText, IsCutAndFreeOfControlCharacters) {
  EXPECT_EQ(sanitize_text(view_of("a\nb\tc\x7f")), "a b c ");
  EXPECT_EQ(sanitize_text({nullptr, 5}), "");
  const std::string endless(5000, 'x');
  EXPECT_THAT(sanitize_text(view_of(endless)), SizeIs(kMaxPluginTextBytes));
}

TEST(PluginHost, LogsUnderThePluginsName) {
  std::ostringstream lines;
  auto log = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines));
  log->set_pattern("%l %v");
  const PluginHost host("gpu", log, nullptr);
  const topolet_host* view = host.view();
  const auto* capability = static_cast<const topolet_log*>(view->get_capability(view, view_of(TOPOLET_LOG_ID)));
  ASSERT_NE(capability, nullptr);
  capability->write(view, TOPOLET_LOG_WARN, view_of("no {} devices\nat all"));
  EXPECT_EQ(lines.str(), "warning gpu: no {} devices at all\n");
  EXPECT_EQ(view->get_capability(view, view_of("topolet.log/2")), nullptr);
}

}  // namespace
}  // namespace topolet::plugin
