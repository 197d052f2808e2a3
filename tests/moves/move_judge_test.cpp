#include "tests/moves/move_judge.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "core/topology/discover.hpp"
#include "tests/moves/answer_line.hpp"

namespace topolet::moves {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two nodes of 8 CPUs, in two caches each; two threads a core: 0-7 and 8-15.
constexpr const char* kMachine = "pack:2 numa:1 l3:2 core:2 pu:2";

class TestMoveJudge : public ::testing::Test {
 protected:
  void set_rules(const std::vector<std::string>& flags) {
    auto topology = topology::discover({.synthetic = kMachine});
    if (!topology) throw std::logic_error(topology.error().message);
    judge_ = std::make_unique<MoveJudge>(*topology, MoveRules::from_flags(flags));
  }

  void SetUp() override { set_rules({"--placement.heal=all"}); }

  void tell(const std::string& line, const std::string& answer) {
    const auto operation = simulate::parse_operation(line);
    const auto result = parse_answer(answer);
    if (!operation) throw std::logic_error(operation.error().message);
    if (!result) throw std::logic_error(result.error().message);
    judge_->observe(*operation, *result);
  }

  static std::string answer(const std::string& mode, const std::string& cpus, const std::string& changed = "",
                            const std::string& withheld = "", const std::string& mems = "") {
    return fmt::format(
        R"({{"outcome":"placed","mode":"{}","cpus":"{}","withheld":"{}","mems":"{}","reason":"","changed":[{}]}})",
        mode, cpus, withheld, mems, changed);
  }

  static std::string moved(const std::string& pod, const std::string& cpus, const std::string& code,
                           const std::string& mode = "exclusive", const std::string& withheld = "") {
    return fmt::format(
        R"({{"pod":"{}","container":"main","mode":"{}","cpus":"{}","withheld":"{}","mems":"","reason":"{}",)"
        R"("reason_code":"{}"}})",
        pod, mode, cpus, withheld, code.empty() ? "" : "because", code);
  }

  void create(const std::string& pod, const std::string& cpus, const std::string& changed = "",
              const std::string& more = "", const std::string& mode = "exclusive", const std::string& withheld = "",
              const std::string& mems = "") {
    tell(fmt::format(R"({{"op":"create","pod":"{}","container":"main"{}}})", pod, more),
         answer(mode, cpus, changed, withheld, mems));
  }

  void pass(int seconds, const std::string& changed = "") {
    tell(fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds), answer("", "", changed));
  }

  const std::vector<std::string>& faults() const { return judge_->faults(); }

  std::unique_ptr<MoveJudge> judge_;
};

TEST_F(TestMoveJudge, FindsNothingInAGoodMove) {
  create("wide", "3-4");
  pass(5, moved("wide", "4-5", "healed"));
  EXPECT_THAT(faults(), IsEmpty());
  EXPECT_EQ(judge_->chosen_moves(), 1U);
  EXPECT_EQ(judge_->moves().at("heal"), 1U);
}

TEST_F(TestMoveJudge, FindsTwoWithTheSameCpu) {
  create("a", "0-3");
  create("b", "3-4");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("operation 2: b/main: has CPUs 3, which another one has alone")));
}

TEST_F(TestMoveJudge, FindsWhoSharesWhatAnotherHasAlone) {
  create("a", "0-3", "", "", "shared");
  create("b", "3");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("a/main: shares CPUs 3")));
}

TEST_F(TestMoveJudge, FindsAMoveOntoACpuThatIsTaken) {
  create("a", "0-1");
  create("b", "4-5");
  create("c", "6-7", moved("a", "5-6", "made-room"));
  ASSERT_THAT(faults(), ::testing::SizeIs(2));
  EXPECT_THAT(faults()[0], HasSubstr("operation 3"));
}

TEST_F(TestMoveJudge, FindsWhoIsKeptIdleForAnother) {
  create("a", "0", "", "", "exclusive", "1");
  create("b", "1");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("has CPUs 1")));
}

TEST_F(TestMoveJudge, FindsAPlaceOnMoreNodes) {
  create("a", "0-1");
  pass(5, moved("a", "7-8", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("worse: nodes 1 -> 2")));
}

TEST_F(TestMoveJudge, FindsAPlaceInMoreCaches) {
  create("a", "0-1");
  create("b", "4-5", moved("a", "3-4", "made-room"));
  EXPECT_THAT(faults(), ::testing::Contains(HasSubstr("caches 1 -> 2")));
}

TEST_F(TestMoveJudge, FindsAPlaceFartherFromTheDevice) {
  tell(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"0"})", answer("", ""));
  create("a", "0-1", "", R"(,"devices":["/dev/nvidia0"])");
  pass(5, moved("a", "8-9", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("remote from devices 0 -> 2")));
}

TEST_F(TestMoveJudge, FindsADeviceThatMakesRoom) {
  tell(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"0"})", answer("", ""));
  create("a", "0-1", "", R"(,"devices":["/dev/nvidia0"])");
  create("b", "0-1", moved("a", "2-3", "made-room"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("although it has a device")));
}

TEST_F(TestMoveJudge, FindsWhoIsMovedTwiceWithinTenMinutes) {
  create("a", "3-4");
  pass(60, moved("a", "4-5", "healed"));
  pass(500);
  create("b", "4-5", moved("a", "6-7", "made-room"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("moved twice within 560 s")));
}

/// The first may have happened at the beginning of its line.
TEST_F(TestMoveJudge, PermitsAnotherMoveAfterTenMinutes) {
  create("a", "3-4");
  pass(60, moved("a", "4-5", "healed"));
  pass(540);
  create("b", "4-5", moved("a", "6-7", "made-room"));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(TestMoveJudge, FindsMoreMovesThanAnAdmissionMayCause) {
  create("a", "0");
  create("b", "1");
  create("c", "0-1", moved("a", "2", "made-room") + "," + moved("b", "3", "made-room"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("2 containers moved to make room for it, 1 may")));
}

TEST_F(TestMoveJudge, PermitsThreeMovesForADevice) {
  const std::string three =
      moved("a", "4", "made-room") + "," + moved("b", "5", "made-room") + "," + moved("c", "6", "made-room");
  for (const auto& [pod, cpu] : {std::pair("a", "0"), std::pair("b", "1"), std::pair("c", "2"), std::pair("d", "3")}) {
    create(pod, cpu);
  }
  tell(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"0"})", answer("", ""));
  create("g", "0-2", three, R"(,"devices":["/dev/nvidia0"])");
  EXPECT_THAT(faults(), IsEmpty());
  create("h", "4-6",
         moved("a", "8", "made-room") + "," + moved("b", "9", "made-room") + "," + moved("c", "10", "made-room") + "," +
             moved("d", "11", "made-room"),
         R"(,"devices":["/dev/nvidia0"])");
  EXPECT_THAT(faults(), ::testing::Contains(HasSubstr("4 containers moved to make room for it, 3 may")));
}

TEST_F(TestMoveJudge, FindsMovesThatTheOptionsForbid) {
  set_rules({"--placement.heal=shared", "--placement.make-room=off"});
  create("a", "3-4");
  create("b", "0-1", moved("a", "4-5", "made-room"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("moved (room) with placement.heal = shared"),
                                    HasSubstr("with placement.make-room = off")));
}

TEST_F(TestMoveJudge, ReadsTheAnnotationOfThePod) {
  set_rules({"--placement.heal=off"});
  tell(R"({"op":"run_pod","pod":"a","annotations":{"topolet.io/move":"allow"}})", answer("", ""));
  create("a", "3-4");
  pass(5, moved("a", "4-5", "healed"));
  EXPECT_THAT(faults(), IsEmpty());
  set_rules({"--placement.heal=all"});
  tell(R"({"op":"run_pod","pod":"a","annotations":{"topolet.io/move":"never"}})", answer("", ""));
  create("a", "3-4");
  pass(5, moved("a", "4-5", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("its pod says never")));
}

TEST_F(TestMoveJudge, FindsExclusiveCpusThatChangeWithoutAWord) {
  create("a", "3-4");
  pass(5, moved("a", "4-5", "returned"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("its exclusive CPUs 3-4 became 4-5: returned")));
}

/// Shared containers leave what another one gets alone, and come back.
TEST_F(TestMoveJudge, LetsThePoolBe) {
  create("a", "0-15", "", "", "shared");
  create("b", "0-1", moved("a", "2-15", "", "shared"));
  tell(R"({"op":"remove_pod","pod":"b"})", answer("", "", moved("a", "0-15", "", "shared")));
  EXPECT_THAT(faults(), IsEmpty());
  EXPECT_EQ(judge_->moves().at("pool"), 2U);
}

TEST_F(TestMoveJudge, FindsANumberOfCpusThatChanges) {
  create("a", "3-4");
  pass(5, moved("a", "4", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("from 2 CPUs of its own to 1")));
}

TEST_F(TestMoveJudge, FindsACoreThatIsNotAloneAnyMore) {
  create("a", "0", "", "", "exclusive", "1");
  pass(5, moved("a", "2", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("had its cores alone")));
}

TEST_F(TestMoveJudge, FindsHalvesOfCoresWhereThereAreToBeNone) {
  set_rules({"--placement.heal=all", "--numa.full-pcpus-only=true"});
  create("a", "0-1");
  pass(5, moved("a", "1-2", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("without 0,3 of the same cores")));
}

TEST_F(TestMoveJudge, FindsMemoryThatStaysBehind) {
  create("a", "0-1", "", R"(,"memory_request":1073741824)");
  create("b", "2-3", "", "", "exclusive", "", "0");
  pass(5, moved("a", "8-9", "healed"));
  pass(5, moved("b", "10-11", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("a/main: moved to another node although 1073741824 bytes stay behind"),
                                    HasSubstr("b/main: moved to another node although its memory is bound")));
}

TEST_F(TestMoveJudge, PermitsThatMemoryStaysOnANodeThatItLeaves) {
  create("a", "7-8", "", R"(,"memory_request":1073741824)");
  pass(5, moved("a", "6-7", "healed"));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(TestMoveJudge, PermitsThatAMoveIsWithdrawn) {
  create("a", "3-4");
  pass(5, moved("a", "4-5", "healed"));
  pass(5, moved("a", "3-4", "reverted"));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(TestMoveJudge, PermitsMemoryThatMigrates) {
  set_rules({"--placement.heal=all", "--placement.memory-migrate=true"});
  create("a", "0-1", "", R"(,"memory_request":1073741824)");
  pass(5, moved("a", "8-9", "healed"));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(TestMoveJudge, FindsAContainerApartFromItsPod) {
  set_rules({"--placement.heal=all", "--numa.scope=pod"});
  create("a", "0-1");
  tell(R"({"op":"create","pod":"a","container":"side"})", answer("exclusive", "2"));
  pass(5, moved("a", "8-9", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("apart from its pod on 0")));
}

TEST_F(TestMoveJudge, FindsMoreThanOneHealedASecond) {
  create("a", "3-4");
  create("b", "11-12");
  create("c", "7-8");
  pass(1, moved("a", "4-5", "healed") + "," + moved("b", "12-13", "healed") + "," + moved("c", "6-7", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("3 containers healed in 1 s")));
}

TEST_F(TestMoveJudge, PermitsAPassThatWasAskedForToHealSeveral) {
  create("a", "3-4");
  create("b", "7-8");
  create("c", "11-12");
  const std::string all =
      moved("a", "0-1", "healed") + "," + moved("b", "4-5", "healed") + "," + moved("c", "8-9", "healed");
  tell(R"({"op":"heal"})", answer("", "", all));
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(TestMoveJudge, FindsAMoveToAnOfflineCpu) {
  create("a", "3-4");
  tell(R"({"op":"offline","cpus":"5"})", answer("", ""));
  pass(5, moved("a", "4-5", "healed"));
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("5, which are offline")));
}

TEST(AnswerLine, NamesWhatItCannotRead) {
  EXPECT_THAT(parse_answer("{}").error().message, HasSubstr("not an answer of topolet simulate --json"));
  EXPECT_FALSE(parse_answer("x").has_value());
}

TEST(MoveRules, ReadSizes) {
  EXPECT_EQ(MoveRules::from_flags({"--placement.move-memory=1Gi"}).move_memory_bytes, std::int64_t{1} << 30);
}

}  // namespace
}  // namespace topolet::moves
