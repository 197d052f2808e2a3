#include "core/engine/converge/overrule_watch.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/engine/converge_test.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;

/// `a` has CPUs 0-1 alone, and `b` shares the others.
class OverruleWatchTest : public ConvergeTest {
 protected:
  void begin_converged() {
    begin({exclusive("a", {0, 1}), shared("b")});
    for (const char* name : {"a", "b"}) {
      start_converged(name);
      mover_->verify(std::string("c-") + name);  // its process is known from then on
    }
    loop_.run();
    runtime_.take_calls();
    take_transitions();
  }

  void put_on(const std::string& name, const CpuSet& cpus) { kernel_.run_on(container_of(name).pid, cpus); }
  /// Whatever it is told from now on, another hand puts it back at once.
  void hold_on(const std::string& name, const CpuSet& cpus) {
    put_on(name, cpus);
    runtime_.ignore_updates("c-" + name);
  }
  void let_go(const std::string& name) { runtime_.ignore_updates("c-" + name, false); }

  /// As the reconciler does.
  void check_for(seconds time) {
    for (seconds passed{0}; passed < time; passed += seconds(5)) {
      for (const char* name : {"a", "b"}) {
        if (find(name) != nullptr) mover_->verify_in_kernel(std::string("c-") + name);
      }
      loop_.run();
      loop_.advance(seconds(5));
    }
  }
  void see_start_of(const std::string& name) {
    mover_->verify_start("c-" + name);
    loop_.run();
  }

  /// The rows that say something of anybody, since the last call: "drift b", "overruled a"…
  std::vector<std::string> take_rows() {
    std::vector<std::string> rows;
    for (const std::string& line : take_transitions()) {
      for (const std::string word : {"drift", "overruled", "overlap"}) {
        if (line.rfind(word + " ", 0) == 0) rows.push_back(word + line.substr(line.find(':') + 1));
      }
    }
    return rows;
  }
  std::size_t repairs_of(const std::string& name) {
    const std::vector<std::string> calls = runtime_.take_calls();
    return static_cast<std::size_t>(std::count_if(calls.begin(), calls.end(), [&](const std::string& call) {
      return call.rfind("UpdateContainerResources c-" + name, 0) == 0;
    }));
  }
  std::string_view mode_of(const std::string& name) const { return seen_mode(*find(name)); }
};

TEST_F(OverruleWatchTest, KnowsAtTheFirstLookThatAnotherHandHasPutItElsewhere) {
  begin_converged();
  put_on("a", {2});
  see_start_of("a");
  EXPECT_THAT(take_rows(), ElementsAre("overruled a")) << "and no drift";
  EXPECT_TRUE(find("a")->overruled);
  EXPECT_EQ(repairs_of("a"), 1U) << "at once";
  EXPECT_EQ(mode_of("a"), "overruled") << "for a minute, though it is back";
  EXPECT_TRUE(find("a")->seen_on.empty());
  check_for(seconds(55));
  EXPECT_TRUE(find("a")->overruled);
  check_for(seconds(15));
  EXPECT_FALSE(find("a")->overruled);
  EXPECT_EQ(mode_of("a"), "exclusive");
  EXPECT_THAT(take_rows(), ElementsAre("overruled a"));
}

TEST_F(OverruleWatchTest, RepairsTheFirstDriftAndTakesAnAnswerToItForAnotherHand) {
  begin_converged();
  put_on("b", {2});  // some of its own
  check_for(seconds(5));
  put_on("b", {0, 5});
  check_for(seconds(5));
  EXPECT_THAT(take_rows(), ElementsAre("drift b", "overlap b", "overlap b"));
  EXPECT_FALSE(find("b")->overruled);
  put_on("b", {0, 5});
  check_for(seconds(5));
  EXPECT_THAT(take_rows(), ElementsAre("overruled b", "overlap b"));
  check_for(seconds(70));
  EXPECT_THAT(take_rows(), ElementsAre("overruled b", "overlap b")) << "both are over";
}

TEST_F(OverruleWatchTest, TakesTheSecondTimeInTenMinutesForAnotherHand) {
  begin_converged();
  put_on("a", {2});
  check_for(seconds(75));
  EXPECT_THAT(take_rows(), ElementsAre("drift a"));
  put_on("a", {3});
  check_for(seconds(5));
  EXPECT_THAT(take_rows(), ElementsAre("overruled a"));
}

TEST_F(OverruleWatchTest, DriftsAgainWhereLongTimesLieBetweenAndNotMoreThanTwiceADay) {
  begin_converged();
  for (int i = 0; i < 2; ++i) {
    put_on("a", {2});
    check_for(minutes(11));
    EXPECT_THAT(take_rows(), ElementsAre("drift a"));
  }
  put_on("a", {2});
  check_for(seconds(5));
  EXPECT_THAT(take_rows(), ElementsAre("overruled a"));
}

TEST_F(OverruleWatchTest, SaysOnceThatRepairsDoNotHoldAndTriesThemEveryTenSeconds) {
  begin_converged();
  hold_on("b", {0, 5});
  check_for(seconds(5));
  EXPECT_THAT(take_rows(), ElementsAre("drift b", "overlap b", "overruled b"));
  EXPECT_TRUE(find("b")->overruled);
  EXPECT_EQ(find("b")->seen_on, (CpuSet{0, 5}));
  EXPECT_EQ(find("a")->overlapped, (CpuSet{0}));
  EXPECT_EQ(mode_of("a"), "overlapped");
  repairs_of("b");
  check_for(minutes(10));
  EXPECT_THAT(take_rows(), ElementsAre());
  EXPECT_LE(repairs_of("b"), 60U);
  let_go("b");
  check_for(seconds(15));
  EXPECT_EQ(repairs_of("b"), 1U) << "and then it is where it should be";
  EXPECT_TRUE(find("a")->overlapped.empty());
  EXPECT_EQ(mode_of("a"), "exclusive");
  EXPECT_THAT(take_rows(), ElementsAre());
  check_for(seconds(70));
  EXPECT_THAT(take_rows(), ElementsAre("overruled b", "overlap b"));
}

TEST_F(OverruleWatchTest, StaysOverruledByAHandThatComesAndGoes) {
  begin_converged();
  hold_on("b", {0, 5});
  check_for(seconds(10));
  take_rows();
  runtime_.take_calls();
  for (int i = 0; i < 10; ++i) {
    let_go("b");
    put_on("b", find("b")->placement.cpus);
    check_for(seconds(30));
    EXPECT_EQ(mode_of("a"), "exclusive");
    hold_on("b", {0, 5});
    check_for(seconds(30));
    EXPECT_EQ(mode_of("a"), "overlapped");
    EXPECT_TRUE(find("b")->overruled);
  }
  EXPECT_THAT(take_rows(), ElementsAre());
  EXPECT_LE(repairs_of("b"), 60U);
}

TEST_F(OverruleWatchTest, WaitsForARuntimeThatIsSlow) {
  begin_converged();
  runtime_.ignore_updates("c-b");
  commit(event::CreateAdmitted{guaranteed("c", 1), exclusive_on({2})});
  loop_.advance(milliseconds(600));
  EXPECT_FALSE(find("b")->overruled);
  let_go("b");
  loop_.advance(seconds(5));
  EXPECT_EQ(runtime_.container("c-b").cpus(), CpuSet::range(3, 7));
  EXPECT_TRUE(find("b")->seen_on.empty());
  EXPECT_THAT(take_rows(), ElementsAre());
}

TEST_F(OverruleWatchTest, IsNoneOfAStartThatLosesAnUpdate) {
  begin_converged();
  // The runtime has taken what the kernel has not.
  commit(event::CreateAdmitted{guaranteed("c", 1), exclusive_on({2})});
  put_on("b", CpuSet::range(2, 7));
  mover_->note_sent("c-b", {CpuSet::range(2, 7), {}});
  see_start_of("b");
  EXPECT_FALSE(find("b")->overruled);
  EXPECT_EQ(repairs_of("b"), 2U);
}

TEST_F(OverruleWatchTest, IsNoneWhereTheKernelHasItOnAllCpus) {
  begin_converged();
  put_on("a", CpuSet::range(0, 7));  // none were set yet
  see_start_of("a");
  put_on("b", CpuSet::range(0, 1));  // those that it has are offline
  see_start_of("b");
  EXPECT_THAT(take_rows(), ElementsAre("drift a", "drift b", "overlap b", "overlap b"));
}

TEST_F(OverruleWatchTest, IsNoneAroundAChangeOfTheMachine) {
  begin_converged();
  put_on("b", {0, 5});
  check_for(seconds(5));
  take_rows();
  CpuInventory fewer = kEightCpus;
  fewer.allowed.erase(7);
  commit(event::MachineChanged{fewer});
  put_on("b", {0, 5});
  check_for(seconds(5));
  EXPECT_FALSE(find("b")->overruled);
}

TEST_F(OverruleWatchTest, TakesFewerCpusForItsOwn) {
  begin_converged();
  hold_on("a", {1});
  hold_on("b", {5});
  see_start_of("a");
  see_start_of("b");
  check_for(minutes(2));
  EXPECT_THAT(take_rows(), ElementsAre());
  EXPECT_EQ(mode_of("a"), "exclusive");
}

TEST_F(OverruleWatchTest, KnowsNothingOfWhatCannotBeRead) {
  begin({exclusive("a", {0, 1}), shared("b")});
  ScriptedRuntime::Container unseen = container_of("a");
  unseen.pid = 0;
  runtime_.put("c-a", unseen);
  mover_->open_queue("c-a", desired_cpuset_of(*find("a")));
  loop_.run();
  see_start_of("a");
  check_for(minutes(2));
  EXPECT_THAT(take_rows(), ElementsAre());
  EXPECT_FALSE(find("a")->overruled);
}

TEST_F(OverruleWatchTest, EndsWithTheContainer) {
  begin_converged();
  hold_on("b", {0, 5});
  check_for(seconds(10));
  take_rows();
  commit(event::Ended{find("b")->workload.key, "removed"});
  EXPECT_THAT(take_rows(), ElementsAre("overruled b", "overlap b"));
  EXPECT_EQ(mode_of("a"), "exclusive");
}

TEST_F(OverruleWatchTest, EndsWithAContainerThatFailsAndKeepsItsCpus) {
  begin_converged();
  hold_on("a", {5});
  check_for(seconds(10));
  take_rows();
  commit(event::Exited{find("a")->workload.key, 1});
  EXPECT_EQ(find("a")->phase, Phase::kCrashed);
  EXPECT_FALSE(find("a")->overruled);
  EXPECT_TRUE(find("a")->seen_on.empty());
  EXPECT_THAT(take_rows(), ElementsAre("overruled a"));
}

TEST_F(OverruleWatchTest, IsKnownAfterARestart) {
  Allocation overruled = shared("b");
  overruled.overruled = Overruled{milliseconds(1), milliseconds(2)};
  overruled.seen_on = {0, 5};
  overruled.vacating = {0};
  Allocation owner = exclusive("a", {0, 1});
  owner.overlapped = {0};
  begin({owner, overruled});
  for (const char* name : {"a", "b"}) runtime_.put(std::string("c-") + name, container_of(name));
  hold_on("b", {0, 5});
  commit(event::Restarted{});
  EXPECT_EQ(mover_->overlaps().size(), 1U);
  reconciler_->run([](const Status&) {});
  loop_.run();
  check_for(minutes(2));
  EXPECT_THAT(take_rows(), ElementsAre()) << "it was said before";
  EXPECT_EQ(mode_of("a"), "overlapped");
  let_go("b");
  check_for(seconds(90));
  EXPECT_THAT(take_rows(), ElementsAre("overruled b", "overlap b"));
}

}  // namespace
}  // namespace topolet::engine
