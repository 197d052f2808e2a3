// smt.pair = measured: who is heavy and who is light by what was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <string>
#include <vector>

#include "plugins/smt/kinds.hpp"
#include "plugins/smt/policy.hpp"
#include "plugins/smt/profiles.hpp"
#include "tests/plugins/load/loads.hpp"

namespace topolet::smt {
namespace {

using load_policy::Loads;
using load_policy::used;
using sdk::Set;
using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr std::int64_t kHourMs = 3600000;
constexpr std::int64_t kDayAgoMs = 20000 * 24 * kHourMs;
const Plugin::Values kMeasuredPairs = {{"pair", "measured"}};

std::string day(const std::vector<std::int32_t>& permille) {
  DayOfUse made;
  for (std::size_t hour = 0; hour < 24; ++hour) made.permille[hour] = permille[hour % permille.size()];
  made.last_hour = 480000;
  return to_text(made);
}
/// Busy in the first 12 hours, or in the last 12.
std::string half_a_day(bool first) {
  std::vector<std::int32_t> hours(24, 100);
  for (std::size_t hour = 0; hour < 12; ++hour) hours[first ? hour : hour + 12] = 900;
  return day(hours);
}

Container pod(const std::string& name, const std::string& pod_uid = "new") {
  return {.pod_uid = pod_uid, .pod_name = name, .cpu_request_milli = 1000};
}

TEST(SmtKinds, ReadsTheOwnerFromNameAndLabelsOfAPod) {
  struct Case {
    std::string pod;
    std::vector<topolet_kv> labels;
    std::string owner;
  };
  const std::vector<Case> cases = {
      {"web-5d4f9c-x7k2p", {{TOPOLET_STR("pod-template-hash"), TOPOLET_STR("5d4f9c")}}, "web"},
      {"rs-x7k2p", {{TOPOLET_STR("pod-template-hash"), TOPOLET_STR("5d4f9c")}}, "rs"},
      {"db-12", {{TOPOLET_STR("controller-revision-hash"), TOPOLET_STR("db-77")}}, "db"},
      {"log-x7k2p", {{TOPOLET_STR("controller-revision-hash"), TOPOLET_STR("77")}}, "log"},
      {"report-28912345-abcde", {{TOPOLET_STR("job-name"), TOPOLET_STR("report-28912345")}}, "report"},
      {"once-abcde", {{TOPOLET_STR("batch.kubernetes.io/job-name"), TOPOLET_STR("once")}}, "once"},
      {"part-7-abcde", {{TOPOLET_STR("job-name"), TOPOLET_STR("part-7")}}, "part-7"},
      {"bare-x7k2p", {}, "bare-x7k2p"}};
  for (const Case& one : cases)
    EXPECT_EQ(owner_of(one.pod, {one.labels.data(), one.labels.size()}), one.owner) << one.pod;
}

TEST(SmtDayOfUse, ReadsWhatItHasWritten) {
  const std::string text = day({-1, 0, 999});
  ASSERT_TRUE(parse_day(text));
  EXPECT_EQ(to_text(*parse_day(text)), text);
  for (const std::string& bad : {std::string(), std::string("5"), text + " 7", text + "x", "x" + text, day({10000})})
    EXPECT_FALSE(parse_day(bad)) << bad;
}

/// One node of four cores of two threads: CPUs 0-1, 2-3, …
class SmtMeasuredTest : public ::testing::Test {
 protected:
  std::string reason(const Container& container, std::uint32_t cpus = 1) {
    Plugin plugin(topolet_plugin_v1, host_, kMeasuredPairs);
    return plugin.score(Request(machine_, ledger_, container, cpus)).at(0).reason;
  }
  std::string narrowed(const Container& container, std::uint32_t cpus, const topolet_load* load = nullptr,
                       topolet_occasion occasion = TOPOLET_OCCASION_CREATE) {
    Plugin plugin(topolet_plugin_v1, host_, kMeasuredPairs);
    Request request(machine_, ledger_, container, cpus);
    request.occasion(occasion);
    if (load != nullptr) request.load(*load);
    const auto picked = plugin.pick(request, 0);
    return picked.narrowed ? picked.narrow.to_string() : "all";
  }
  std::vector<std::pair<std::string, std::string>> tags(const Container& container,
                                                        topolet_occasion occasion = TOPOLET_OCCASION_CREATE) {
    Plugin plugin(topolet_plugin_v1, host_, kMeasuredPairs);
    Request request(machine_, ledger_, container, 1);
    request.occasion(occasion);
    const auto adjusted = plugin.adjust(request, 0, set_of({0}));
    return {adjusted.tags.begin(), adjusted.tags.end()};
  }

  Machine machine_{"numa:1 core:4 pu:2"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(SmtMeasuredTest, TakesOneThatWasNeverMeasuredForHeavy) {
  ledger_.place_shared(pod("web", "a"), set_of({0}));
  EXPECT_THAT(reason(pod("web")), HasSubstr("it counts as heavy: nothing is known of what default/web/main uses"));
  host_.state["day/default/web/main"] = "of another version";
  EXPECT_THAT(reason(pod("web")), HasSubstr("nothing is known"));
}

TEST_F(SmtMeasuredTest, PutsAMeasuredLightOneBesideAHeavyOne) {
  host_.state["day/default/idle/main"] = day({20, 120, -1});
  ledger_.place_exclusive(pod("busy", "a"), set_of({2}));
  EXPECT_EQ(narrowed(pod("busy"), 1), "0,4,6") << "it is heavy: nothing is known of it";
  EXPECT_EQ(narrowed(pod("idle"), 1), "3");
  EXPECT_THAT(reason(pod("idle")), HasSubstr("it counts as light: default/idle/main uses up to 0.12 of its CPUs"));
}

TEST_F(SmtMeasuredTest, LetsContainersWithOppositePeaksShareACore) {
  host_.state["day/default/day/main"] = half_a_day(true);
  host_.state["day/default/night/main"] = half_a_day(false);
  Container by_day = pod("day", "a");
  by_day.tags = {{"smt/profile", tags(pod("day")).at(0).second}};
  ledger_.place_exclusive(by_day, set_of({0, 2, 4, 6}));
  EXPECT_EQ(narrowed(pod("night"), 2), "all") << "all that are free";
  const auto verdict = reason(pod("night"));
  EXPECT_THAT(verdict, HasSubstr("1 core without another heavy container"));
  EXPECT_THAT(verdict, HasSubstr("busy, or not measured, in hours 12-23 of the day in UTC"));
  EXPECT_THAT(reason(pod("day")), HasSubstr("1 CPU beside another heavy container"));
  std::vector<std::int32_t> unknown(24, 100);
  unknown[3] = -1;
  unknown[20] = 900;
  host_.state["day/default/night/main"] = day(unknown);
  EXPECT_THAT(reason(pod("night")), HasSubstr("1 CPU beside another heavy container"))
      << "in an hour that was not measured it may be busy";
}

TEST_F(SmtMeasuredTest, CountsAsItDidWhenItWasCreated) {
  host_.state["day/default/web/main"] = day({100});
  EXPECT_THAT(tags(pod("web")), ElementsAre(Pair("smt/profile", "light")));
  Container moved = pod("web");
  moved.tags = {{"smt/profile", "light"}};
  host_.state["day/default/web/main"] = day({900});
  EXPECT_THAT(tags(moved, TOPOLET_OCCASION_MOVE), IsEmpty());
  ledger_.place_exclusive(pod("busy", "a"), set_of({2}));
  EXPECT_EQ(narrowed(moved, 1, nullptr, TOPOLET_OCCASION_MOVE), "3");
  EXPECT_THAT(tags(pod("web")), ElementsAre(Pair("smt/profile", "heavy ffffff"))) << "the next one";
}

TEST_F(SmtMeasuredTest, JudgesNeighboursFromBeforeByWhatTheyUseNow) {
  ledger_.place_exclusive(pod("before", "a"), set_of({2}));
  host_.state["day/default/idle/main"] = day({20});
  const Loads busy({}, {used(900)});
  const Loads idle({}, {used(100)});
  const Loads old({}, {used(100, 5001)});
  EXPECT_EQ(narrowed(pod("idle"), 1, &busy.view()), "3") << "beside a heavy one";
  EXPECT_EQ(narrowed(pod("idle"), 1, &idle.view()), "1,3,5,7") << "there is no heavy one";
  EXPECT_EQ(narrowed(pod("idle"), 1, &old.view()), "3");
  EXPECT_EQ(narrowed(pod("idle"), 1), "3");
}

TEST_F(SmtMeasuredTest, LeavesAnnotationsAndBestEffortContainersAsTheyAre) {
  host_.state["day/default/web/main"] = day({900});
  Container annotated = pod("web");
  annotated.settings = {{"cpu-profile", "light"}};
  EXPECT_THAT(tags(annotated), IsEmpty());
  ledger_.place_exclusive(pod("busy", "a"), set_of({2}));
  EXPECT_EQ(narrowed(annotated, 1), "3");
  Container best_effort = {.pod_uid = "be", .pod_name = "be", .qos = TOPOLET_QOS_BESTEFFORT};
  EXPECT_EQ(narrowed(best_effort, 0), "all");
}

TEST_F(SmtMeasuredTest, DoesNotLookAtMeasurementsUnlessToldTo) {
  host_.state["day/default/web/main"] = day({900});
  Plugin plugin(topolet_plugin_v1, host_, {{"pair", "true"}});
  EXPECT_TRUE(plugin.score(Request(machine_, ledger_, pod("web"), 1)).at(0).reason.empty());
  Ledger ledger(machine_);
  ledger.place_exclusive(pod("web", "a"), set_of({2})).entry_flags(TOPOLET_ENTRY_STARTED);
  const Loads loads({}, {used(900)});
  for (int i = 0; i < 20; ++i) plugin.tick(machine_, ledger, 0, &loads.view(), kDayAgoMs);
  EXPECT_THAT(host_.state, SizeIs(1));
}

/// Two containers of one kind, measured.
class SmtLearningTest : public SmtMeasuredTest {
 protected:
  SmtLearningTest() {
    Container one = pod("web-x-1", "a");
    Container two = pod("web-x-2", "b");
    one.pod_labels = two.pod_labels = {{"pod-template-hash", "x"}};
    ledger_.place_exclusive(one, set_of({0, 2})).entry_flags(TOPOLET_ENTRY_STARTED);
    ledger_.place_shared(two, set_of({4, 6})).entry_flags(TOPOLET_ENTRY_STARTED);
  }
  void measure(Plugin& plugin, int times, const Loads& loads, std::int64_t hour) {
    for (int i = 0; i < times; ++i)
      plugin.tick(machine_, ledger_, 0, &loads.view(), kDayAgoMs + hour * kHourMs + i * 60000);
  }
  std::int32_t learned(std::size_t hour) {
    const auto saved = host_.state.find("day/default/web/main");
    return saved == host_.state.end() ? -2 : parse_day(saved->second)->permille.at(hour);
  }
  const Loads half_{{}, {used(1600), used(200)}};  ///< of two CPUs, and of the one that it requests
};

TEST_F(SmtLearningTest, SavesTheMeanOfAKindEveryTenMinutes) {
  Plugin plugin(topolet_plugin_v1, host_, kMeasuredPairs);
  measure(plugin, 9, half_, 5);
  EXPECT_EQ(learned(5), -2) << "too little is known";
  measure(plugin, 1, half_, 5);
  EXPECT_EQ(learned(5), 500);
  EXPECT_EQ(learned(4), -1);
  const Loads idle({}, {used(0), used(100)});
  measure(plugin, 10, idle, 5);
  EXPECT_EQ(learned(5), (3 * 500 + 50 + 2) / 4) << "a quarter of the value is new";
}

TEST_F(SmtLearningTest, KeepsHoursApart) {
  Plugin plugin(topolet_plugin_v1, host_, kMeasuredPairs);
  measure(plugin, 9, half_, 5);
  measure(plugin, 9, half_, 6);
  EXPECT_EQ(learned(6), -2) << "neither hour was measured for ten minutes";
  measure(plugin, 1, half_, 6);
  EXPECT_EQ(learned(6), 500);
  EXPECT_EQ(learned(5), -1);
}

TEST_F(SmtLearningTest, LearnsNothingFromWhatIsUnknownOrOld) {
  Plugin plugin(topolet_plugin_v1, host_, kMeasuredPairs);
  const Loads old({}, {used(1600, 5001), {-1, -1, -1, 0}});
  measure(plugin, 20, old, 5);
  for (int i = 0; i < 20; ++i) plugin.tick(machine_, ledger_, 0, nullptr, kDayAgoMs);
  for (int i = 0; i < 20; ++i) plugin.tick(machine_, ledger_, 0, &half_.view(), 0);
  EXPECT_THAT(host_.state, IsEmpty()) << "nor where nobody says what time it is";
}

TEST_F(SmtLearningTest, ForgetsWhatWasNotMeasuredForAWeek) {
  const std::int64_t now = kDayAgoMs / kHourMs;
  DayOfUse old;
  old.last_hour = now - 7 * 24 - 1;
  host_.state["day/default/old/main"] = to_text(old);
  old.last_hour = now - 7 * 24;
  host_.state["day/default/new/main"] = to_text(old);
  Plugin plugin(topolet_plugin_v1, host_, kMeasuredPairs);
  measure(plugin, 1, half_, 0);
  EXPECT_THAT(host_.state, ElementsAre(Pair("day/default/new/main", ::testing::_)));
}

TEST_F(SmtLearningTest, RemembersAThousandKindsThoseThatWereMeasuredLast) {
  const std::int64_t now = kDayAgoMs / kHourMs;
  DayOfUse known;
  for (int i = 0; i < 1000; ++i) {
    known.last_hour = now - (i == 700 ? 2 : 1);
    host_.state["day/default/" + std::to_string(i) + "/main"] = to_text(known);
  }
  Plugin plugin(topolet_plugin_v1, host_, kMeasuredPairs);
  measure(plugin, 10, half_, 0);
  EXPECT_THAT(host_.state, SizeIs(1000));
  EXPECT_EQ(host_.state.count("day/default/700/main"), 0U);
  EXPECT_EQ(host_.state.count("day/default/web/main"), 1U);
}

}  // namespace
}  // namespace topolet::smt
