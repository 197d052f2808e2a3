// The codes that plugins give their reasons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/placement/decide.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::shared_ptr<PluginPolicy> coded(const std::string& answer) {
  return start_plugin(TOPOLET_BROKEN_DIR, "coded", {{"answer", answer}});
}

std::string error_of_score(const std::string& answer) {
  const auto request = two_node_request();
  const auto verdicts = coded(answer)->score(abi_view(*request));
  return verdicts ? "answered" : verdicts.error().message;
}

TEST(Codes, GoWithTheReasonsOfVerdicts) {
  const auto request = two_node_request();
  const auto verdicts = coded("")->score(abi_view(*request));
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  using Kind = placement::Verdict::Kind;
  EXPECT_THAT(*verdicts, ElementsAre(placement::Verdict{Kind::kReject, 0, "because (coded/full)", "coded/full"},
                                     placement::Verdict{Kind::kScore, 5, "because (coded/far-away)", "coded/far-away"},
                                     placement::Verdict()));
}

TEST(Codes, GoWithTheReasonsOfPicks) {
  const auto request = two_node_request();
  const auto pick = coded("")->pick(abi_view(*request), 0, CpuSet::range(0, 3), 2, TOPOLET_PICK_REVIEW, CpuSet{0, 1});
  ASSERT_TRUE(pick) << pick.error().message;
  EXPECT_EQ(pick->rejected, "because (coded/full)");
  EXPECT_EQ(pick->code, "coded/full");
}

TEST(Codes, AreThoseThatThePluginHas) {
  EXPECT_THAT(coded("")->codes(), SizeIs(3));
  const std::string begin = "coded: score gave an invalid answer: ";
  EXPECT_EQ(error_of_score("unknown"), begin + "the code 'unknown', which is none of its codes");
  EXPECT_EQ(error_of_score("null"), begin + "a code is a null pointer");
  EXPECT_EQ(error_of_score("no-candidate"), begin + "a code for candidate 3, but there are only 3");
  EXPECT_EQ(error_of_score("twice"), begin + "two codes for one answer");
  const auto request = two_node_request();
  const auto pick = coded("pick-unknown")->pick(abi_view(*request), 0, CpuSet::range(0, 3), 2);
  ASSERT_FALSE(pick);
  EXPECT_EQ(pick.error().message, "coded: pick gave an invalid answer: the code 'because', which is none of its codes");
}

TEST(Codes, AreRefusedIfTheyAreNone) {
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"upper", "gives the code 'Full'; it must be words"},
      {"dashes", "gives the code 'far--away'; it must be words"},
      {"dash", "gives the code 'far-'; it must be words"},
      {"too-long", "of at most 64 bytes"},
      {"no-help", "gives the code 'full' a help of 0 bytes"},
      {"no-items", "gives codes at no address"},
      {"same", "gives the code 'full' twice"},
      {"too-many", "gives 65 codes; at most 64 are allowed"},
  };
  const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "coded");
  ASSERT_TRUE(library);
  for (const auto& [answer, why] : wrong) {
    const auto made = library->create({{"answer", answer}}, make_silent_log());
    ASSERT_FALSE(made) << answer;
    EXPECT_THAT(made.error().message, HasSubstr("coded: its capability topolet.codes/1 ")) << answer;
    EXPECT_THAT(made.error().message, HasSubstr(why)) << answer;
  }
}

Result<placement::Pick> replacing(const std::string& answer, placement::Mode mode = placement::Mode::kShared) {
  const auto request = two_node_request();
  placement::LedgerEntry entry;
  entry.key = {"uid-2", "db", 0, "sandbox-2"};
  entry.placement.mode = mode;
  request->ledger.entries.push_back(entry);
  return coded(answer)->pick(abi_view(*request), 0, CpuSet::range(0, 3), 2, TOPOLET_PICK_REVIEW, CpuSet{0, 1});
}

TEST(PickedReplacements, AreOthersOfTheLedger) {
  const auto pick = replacing("replace");
  ASSERT_TRUE(pick) << pick.error().message;
  EXPECT_THAT(pick->replace, ElementsAre(placement::Replacement{{"uid-2", "db", 0, "sandbox-2"}, true, "because"}));
}

TEST(PickedReplacements, AreRefusedIfTheyMakeNoSense) {
  const std::string begin = "coded: pick gave an invalid answer: ";
  EXPECT_EQ(replacing("replace-twice").error().message, begin + "two moves of entry 0");
  EXPECT_EQ(replacing("replace-unknown").error().message, begin + "a move of entry 1, but there are only 1");
  EXPECT_EQ(replacing("replace-foreign", placement::Mode::kForeign).error().message,
            begin + "a move of entry 0, which topolet does not place");
}

TEST(Codes, AreKeptWithTheDecision) {
  const auto request = two_node_request();
  PolicyThread thread{PolicyThread::Options{}};
  const auto decision = thread.run_as<placement::Decision>(
      {{.name = "coded", .plugin = coded("")}}, [&](const std::vector<placement::Vote>& votes) {
        return placement::decide(*request, placement::PlacementRules(), votes);
      });
  EXPECT_TRUE(decision.denied) << "it rejects whatever is chosen";
  EXPECT_THAT(decision.verdicts.codes, ElementsAre("coded/full")) << "not what it says of a place that is not chosen";
  EXPECT_THAT(decision.reason, HasSubstr("because (coded/full)"));
}

}  // namespace
}  // namespace topolet::plugin
