#include "core/daemon/recent_denials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr milliseconds kStart = std::chrono::hours(1000);

class RecentDenialsTest : public ::testing::Test {
 protected:
  static engine::Allocation container(const std::string& pod) {
    engine::Allocation made;
    made.workload.key = {.pod_uid = "uid-" + pod, .name = "main", .attempt = 0, .sandbox_id = "s-" + pod};
    made.workload.pod_namespace = "d";
    made.workload.pod_name = pod;
    return made;
  }
  void deny(const std::string& pod, milliseconds at, std::int64_t decision, const std::string& reason = "too few") {
    engine::Transition transition;
    transition.wall_time = at;
    engine::RecordedEvent event;
    event.audit.event = engine::AuditEvent::kDenied;
    event.audit.reason = reason;
    event.audit.reason_code = "too-few-free-cpus";
    event.decision = decision;
    event.subject = container(pod);
    transition.recorded_events.push_back(event);
    denials_.on_durable(transition);
  }
  void repeat(std::int64_t decision, milliseconds at) {
    engine::Transition transition;
    transition.wall_time = at;
    transition.repeated.push_back({decision});
    denials_.on_durable(transition);
  }
  void place(const std::string& pod) {
    engine::Transition transition;
    engine::Change& change = transition.changes.emplace_back();
    change.after = container(pod);
    change.after->workload.key.attempt = 1;
    change.audit = engine::AuditEntry{};
    denials_.on_durable(transition);
  }
  void forget_pod(const std::string& pod) {
    engine::Transition transition;
    transition.pods.push_back({"s-" + pod, {}});
    denials_.on_durable(transition);
  }
  std::vector<std::string> names(milliseconds now) const {
    std::vector<std::string> names;
    for (const RecentDenial& denial : denials_.until(now)) names.push_back(denial.container);
    return names;
  }

  RecentDenials denials_;
};

TEST_F(RecentDenialsTest, TellsThoseOfTenMinutesTheNewestFirst) {
  deny("a", kStart, 1);
  deny("b", kStart + minutes(5), 2);
  EXPECT_THAT(names(kStart + minutes(6)), ElementsAre("d/b/main", "d/a/main"));
  EXPECT_THAT(names(kStart + minutes(11)), ElementsAre("d/b/main"));
  repeat(1, kStart + minutes(12));
  EXPECT_THAT(names(kStart + minutes(16)), ElementsAre("d/a/main")) << "it is denied again and again";
  const RecentDenial again = denials_.until(kStart + minutes(16))[0];
  EXPECT_EQ(again.times, 2U);
  EXPECT_EQ(again.first, kStart);
}

TEST_F(RecentDenialsTest, KnowsWhoIsPlacedOrGoneSince) {
  deny("a", kStart, 1);
  deny("b", kStart, 2);
  deny("c", kStart, 3);
  place("a");
  forget_pod("b");
  for (const RecentDenial& denial : denials_.until(kStart))
    EXPECT_EQ(denial.is_over, denial.container != "d/c/main") << denial.container;
  deny("a", kStart + seconds(1), 4);
  EXPECT_FALSE(denials_.until(kStart + seconds(1))[0].is_over);
}

TEST_F(RecentDenialsTest, GoesOnWithWhatTheDatabaseHas) {
  denials_.begin_with({{.decision = 7,
                        .at_ms = kStart.count(),
                        .last_ms = (kStart + minutes(1)).count(),
                        .times = 4,
                        .pod_uid = "uid-a",
                        .pod_namespace = "d",
                        .pod_name = "a",
                        .container = "main",
                        .sandbox_id = "s-a",
                        .reason_code = "x",
                        .reason = "why"}});
  EXPECT_THAT(names(kStart + minutes(2)), ElementsAre("d/a/main"));
  repeat(7, kStart + minutes(3));
  EXPECT_EQ(denials_.until(kStart + minutes(3))[0].times, 5U);
  deny("a", kStart + minutes(3), 7);
  EXPECT_EQ(denials_.until(kStart + minutes(3))[0].times, 5U) << "a new database is told what is known";
}

TEST_F(RecentDenialsTest, KeepsOnlySoMany) {
  for (int i = 0; i < 5000; ++i) deny(std::to_string(i), kStart + milliseconds(i), i + 1);
  const auto kept = denials_.until(kStart + seconds(5));
  EXPECT_THAT(kept, SizeIs(2000));
  EXPECT_EQ(kept.front().container, "d/4999/main");
  EXPECT_EQ(kept.back().container, "d/3000/main");
  EXPECT_THAT(denials_.until(kStart + minutes(20)), IsEmpty());
}

}  // namespace
}  // namespace topolet::daemon
