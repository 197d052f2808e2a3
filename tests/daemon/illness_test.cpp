// The problems that topoletd reports, from the facts that it knows.
#include "core/daemon/illness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/control/control.pb.h"

namespace topolet::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr milliseconds kNow = std::chrono::hours(1000);

/// Starts from a daemon without problems.
class IllnessTest : public ::testing::Test {
 protected:
  IllnessTest() {
    engine_.reconciled = true;
    facts_.runtime = "/run/runtime.sock";
    facts_.runtime_connected = true;
    facts_.state_dir = "/var/lib/topolet";
    facts_.engine = &engine_;
    facts_.now = kNow;
  }
  PluginFacts& add_plugin(const std::string& name) {
    PluginFacts& plugin = facts_.plugins.emplace_back();
    plugin.name = name;
    return plugin;
  }
  std::vector<std::string> codes() const {
    std::vector<std::string> codes;
    for (const Illness& illness : find_illnesses(facts_)) codes.push_back(illness.code);
    return codes;
  }
  Illness only() const {
    const std::vector<Illness> found = find_illnesses(facts_);
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Illness() : found.front();
  }

  engine::EngineSummary engine_;
  HealthFacts facts_;
};

TEST_F(IllnessTest, FindsNothingWhereAllIsWell) {
  engine_.containers = {{"exclusive", 3}};
  engine_.confines_foreign = true;
  EXPECT_THAT(find_illnesses(facts_), IsEmpty());
}

TEST_F(IllnessTest, IsCriticalWhereNoPodCanStart) {
  facts_.runtime_connected = false;
  EXPECT_EQ(only().code, "runtime-unreachable");
  EXPECT_EQ(only().severity, Severity::kCritical);
  EXPECT_EQ(only().subject, "runtime /run/runtime.sock");
  facts_.runtime_connected = true;
  facts_.runtime_answers = false;
  EXPECT_EQ(only().code, "runtime-unreachable");
  EXPECT_EQ(only().severity, Severity::kCritical);
  EXPECT_THAT(only().sentence, HasSubstr("connected but does not answer"));
  facts_.runtime_answers = true;
  engine_.reconciled = false;
  EXPECT_EQ(only().code, "not-reconciled");
  EXPECT_EQ(only().severity, Severity::kCritical);
  facts_.engine = nullptr;
  EXPECT_EQ(only().code, "engine-busy") << "of an engine that does not answer nothing else is known";
  EXPECT_EQ(only().severity, Severity::kCritical);
}

TEST_F(IllnessTest, TellsOfTheDatabaseAndTheConfiguration) {
  engine_.store_degraded = true;
  engine_.store_degraded_because = "is full";
  facts_.store_damage = "page 3 is no page";
  engine_.store_reopened_because = "it was removed";
  facts_.reload_failed = true;
  facts_.restart_needed = {"daemon.listen"};
  facts_.watch_error = "no such group";
  EXPECT_THAT(codes(), ElementsAre("configuration-rejected", "watch-unavailable", "store-degraded", "store-damaged",
                                   "restart-needed", "store-reopened"))
      << "the notices last";
}

TEST_F(IllnessTest, TellsThatTheRuntimeRefusesFilesOfCgroups) {
  engine_.files_refused_because = "no such resource: memory.high";
  EXPECT_EQ(only().code, "files-refused");
  EXPECT_EQ(only().severity, Severity::kNotice);
  EXPECT_EQ(only().subject, "runtime /run/runtime.sock");
  EXPECT_THAT(only().sentence, HasSubstr("no such resource: memory.high"));
}

TEST_F(IllnessTest, TellsHowPluginsAre) {
  add_plugin("well");
  add_plugin("late").statistics.late_lately = 1;
  add_plugin("failing").statistics.failed_lately = 2;
  add_plugin("out").statistics.quarantine = "late 3 times";
  facts_.plugins.back().statistics.trial_at = kNow + minutes(1);
  add_plugin("tried").statistics.quarantine = "late 3 times";
  facts_.plugins.back().statistics.trial_at = kNow;
  add_plugin("held").statistics.has_abandoned_call = true;
  add_plugin("crashed").is_loaded = false;
  const std::vector<Illness> found = find_illnesses(facts_);
  EXPECT_THAT(codes(), ElementsAre("plugin-late", "plugin-failing", "plugin-quarantined", "plugin-stuck",
                                   "plugin-crashed", "plugin-on-trial"));
  EXPECT_EQ(found[0].subject, "plugin late");
  EXPECT_EQ(found[0].sentence, "late once in ten minutes");
  EXPECT_EQ(found[1].sentence, "failed 2 times in ten minutes");
  EXPECT_EQ(found[5].severity, Severity::kNotice);
}

TEST_F(IllnessTest, IsCriticalWhereAPluginIsNeededThatIsNotAsked) {
  PluginFacts& plugin = add_plugin("numa");
  plugin.needed_by = "plugins.required";
  EXPECT_THAT(codes(), IsEmpty());
  plugin.statistics.quarantine = "threw 3 times";
  EXPECT_EQ(only().severity, Severity::kCritical);
  EXPECT_THAT(only().sentence,
              AllOf(HasSubstr("until `topolet plugin reset numa`: threw 3 times"), HasSubstr("containers are denied")));
}

TEST_F(IllnessTest, NamesContainersThatAreNotAsTheyShouldBe) {
  engine_.overruled.push_back({"d/p/hand", CpuSet{1}, CpuSet{2}, minutes(3)});
  engine_.stuck.push_back({"d/p/stuck", CpuSet{3}, "busy", minutes(2)});
  engine_.overlaps.push_back({"d/p/over", "d/q/own", CpuSet{4}, seconds(30)});
  engine_.overlaps.push_back({"d/p/brief", "d/q/own", CpuSet{4}, milliseconds(30)});
  engine_.squeezed_containers = {{"d/p/less", CpuSet{0}, false}, {"d/p/none", CpuSet{9}, true}};
  engine_.waiting = {{"d/p/waits", "d/q/own", CpuSet{5}, false, kNow - minutes(2)},
                     {"d/p/soon", "d/q/own", CpuSet{5}, false, kNow - seconds(2)},
                     {"d/p/moves", "d/q/own", CpuSet{5}, true, kNow - minutes(99)}};
  engine_.drifted = {{"d/p/drift", CpuSet{6}}};
  engine_.conflicts = {{"d/p/kubelet", CpuSet{7}}};
  engine_.in_doubt = {{"d/p/doubt", kNow - minutes(3)}};
  std::set<std::string> serious;
  for (const Illness& illness : find_illnesses(facts_)) {
    if (needs_somebody(illness.severity)) serious.insert(illness.code + ' ' + illness.subject);
  }
  EXPECT_THAT(serious,
              ElementsAre("conflict d/p/kubelet", "in-doubt d/p/doubt", "left-to-kernel d/p/none", "overlap d/p/over",
                          "overruled d/p/hand", "squeezed d/p/less", "stuck d/p/stuck", "waiting d/p/waits"));
  EXPECT_THAT(find_illnesses(facts_), SizeIs(12));
  const Illness hand = find_illnesses(facts_).front();
  EXPECT_EQ(hand.since, kNow - minutes(3));
  EXPECT_THAT(hand.sentence, AllOf(HasSubstr("which should be 1"), HasSubstr("it runs on CPU 2")));
}

TEST_F(IllnessTest, TellsWhoWasDeniedAndWhetherItStillWaits) {
  facts_.denials = {{.container = "d/p/a",
                     .reason_code = "too-few-free-cpus",
                     .reason = std::string(1000, 'x'),
                     .first = kNow - minutes(5),
                     .newest = kNow,
                     .times = 3},
                    {.container = "d/p/b", .reason = "why", .is_over = true}};
  const std::vector<Illness> found = find_illnesses(facts_);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].subject, "d/p/a");
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_THAT(found[0].sentence, HasSubstr("denied 3 times (too-few-free-cpus): xxx"));
  EXPECT_LT(found[0].sentence.size(), 600U);
  EXPECT_EQ(found[1].severity, Severity::kNotice) << "it needs nobody any more";
}

TEST_F(IllnessTest, TellsOfForeignContainersAsSomebodyHasSetIt) {
  engine_.foreign["kata"] = {2, "not configured"};
  EXPECT_EQ(only().severity, Severity::kNotice);
  EXPECT_THAT(only().sentence, HasSubstr("2 containers not placed, and free to run on any CPU"));
  engine_.unconfined["d/p"] = "read-only file system";
  EXPECT_THAT(codes(), ElementsAre("unconfined", "foreign"));
}

TEST_F(IllnessTest, TellsOfPodsWhoseQuotaStays) {
  engine_.kept_quotas["d/p"] = "read-only file system";
  EXPECT_EQ(only().severity, Severity::kWarning);
  EXPECT_EQ(only().subject, "d/p");
  EXPECT_THAT(only().sentence, HasSubstr("its CFS quota cannot be changed: read-only file system"));
}

TEST_F(IllnessTest, StaysSmallAndCountsWhatItLeavesOut) {
  for (int i = 0; i < 250; ++i) engine_.conflicts.push_back({"d/p/" + std::to_string(i), CpuSet{1}});
  const std::vector<Illness> found = find_illnesses(facts_);
  ASSERT_THAT(found, SizeIs(101));
  EXPECT_EQ(found.back().count, 150U);
  EXPECT_EQ(found.back().subject, "150 more");
}

TEST_F(IllnessTest, SaysTheSameALaterSecond) {
  engine_.overruled.push_back({"d/p/hand", CpuSet{1}, CpuSet{2}, minutes(3)});
  facts_.denials = {{.container = "d/p/a", .reason = "why", .first = kNow, .newest = kNow}};
  const std::vector<Illness> before = find_illnesses(facts_);
  facts_.now += seconds(1);
  engine_.overruled[0].lasts += seconds(1);
  EXPECT_EQ(find_illnesses(facts_), before) << "those who watch are told what is new only";
}

TEST(IllnessCodes, AreAllKnownOnce) {
  std::set<std::string> codes;
  for (const char* code : illness::kAll) EXPECT_TRUE(codes.insert(code).second) << code;
}

}  // namespace
}  // namespace topolet::daemon
