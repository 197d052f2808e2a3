#include "core/engine/state/committer.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/engine/state/codec.hpp"
#include "tests/engine/faulty_store.hpp"
#include "tests/engine/ledgers.hpp"
#include "tests/engine/transition_text.hpp"
#include "tests/engine/waiting_loop.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Writes down what it hears, and what the database holds by then.
class Scribe final : public Observer {
 public:
  Scribe(std::string name, std::vector<std::string>& heard, store::Store* store)
      : name_(std::move(name)), heard_(heard), store_(store) {}

  void on_durable(const Transition& transition) override {
    heard_.push_back(name_ + " " + std::to_string(transition.generation));
    if (store_ == nullptr) return;
    const auto rows = store_->allocations();
    for (const Change& change : transition.changes) {
      const auto row = std::find_if(rows->begin(), rows->end(), [&](const store::AllocationRow& found) {
        return change.after && found.decision == change.after->decision;
      });
      is_written.push_back(change.after ? row != rows->end() && *decode_allocation(*row) == *change.after
                                        : row == rows->end());
    }
  }

  std::vector<bool> is_written;

 private:
  const std::string name_;
  std::vector<std::string>& heard_;
  store::Store* const store_;
};

class CommitterTest : public ::testing::TestWithParam<Writer::Thread> {
 protected:
  CommitterTest()
      : committer_({loop_, store_, {GetParam(), milliseconds(50), milliseconds(1)}, rules_, loop_.clock(), *log_},
                   Ledger(kEightCpus, 0)) {}
  ~CommitterTest() override {
    store_.release();
    committer_.stop();
  }

  void ask(const std::string& name, std::function<void()> then = {}) {
    const auto cpu = static_cast<std::uint32_t>(name.front() - 'a');
    committer_.commit(event::CreateAdmitted{guaranteed(name, 1), exclusive_on({cpu})}, std::move(then));
  }
  std::function<void()> record(const std::string& what) {
    return [this, what] { heard_.push_back(what); };
  }
  void await_recorded(std::size_t count) {
    loop_.run_until([this, count] { return heard_.size() >= count; });
  }

  FaultyStore store_;
  WaitingLoop loop_;
  const std::shared_ptr<Log> log_ = make_silent_log();
  const placement::PlacementRules rules_;
  std::vector<std::string> heard_;
  Committer committer_;
};

TEST_P(CommitterTest, ChangesTheLedgerAtOnceAndTellsLater) {
  ask("a", record("then"));
  EXPECT_NE(committer_.ledger().find(guaranteed("a", 1).key), nullptr);
  EXPECT_THAT(heard_, IsEmpty());
  await_recorded(1);
}

TEST_P(CommitterTest, TellsAtOnceWhatIsDurableAlready) {
  ask("a");
  const std::uint64_t generation = committer_.ledger().generation();
  committer_.when_durable(generation, record("a is durable"));
  EXPECT_THAT(heard_, IsEmpty());
  await_recorded(1);
  ask("b");
  committer_.when_durable(generation, record("still durable"));
  EXPECT_THAT(heard_, ElementsAre("a is durable", "still durable")) << "whatever else waits";
}

TEST_P(CommitterTest, TellsObserversInTheirOrderAndThenWhoeverCausedIt) {
  Scribe first("first", heard_, nullptr);
  Scribe second("second", heard_, nullptr);
  committer_.subscribe(first);
  committer_.subscribe(second);
  ask("a", record("then a"));
  ask("b", record("then b"));
  await_recorded(6);
  EXPECT_THAT(heard_, ElementsAre("first 1", "second 1", "then a", "first 2", "second 2", "then b"));
}

TEST_P(CommitterTest, HasWrittenWhatObserversHear) {
  Scribe scribe("scribe", heard_, &store_);
  committer_.subscribe(scribe);
  const placement::ContainerKey key = guaranteed("a", 1).key;
  // One at a time, so that what is read is what was just written.
  std::vector<Event> events{event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})},
                            event::CreateConfirmed{key, "c1", {CpuSet{0}, {}}},
                            event::Moved{guaranteed("a", 1), exclusive_on({1}), AuditEvent::kReplaced},
                            event::Converged{key, CpuSet{1}},
                            event::CreateAdmitted{guaranteed("b", 1), exclusive_on({3})},
                            event::CreateRefused{guaranteed("b", 1).key, {Code::kUnknown, "no"}},
                            event::CreateAdmitted{guaranteed("c", 1), exclusive_on({3})},
                            event::CreateLeftInDoubt{guaranteed("c", 1).key, {Code::kUnavailable, "gone"}},
                            event::DoubtExpired{guaranteed("c", 1).key},
                            event::Exited{key, 1},
                            event::CrashHoldExpired{key}};
  for (const Event& event : events) {
    const std::size_t before = heard_.size();
    committer_.commit(event, record("then"));
    await_recorded(before + 2);
  }
  EXPECT_EQ(scribe.is_written.size(), events.size());
  EXPECT_THAT(scribe.is_written, Each(true));
  EXPECT_THAT(store_.holders(), IsEmpty());
}

TEST_P(CommitterTest, LetsWhatChangesNothingWaitForWhatCameBefore) {
  ask("a", record("a"));
  committer_.commit(event::StartRequested{guaranteed("unknown", 1).key}, record("nothing"));
  committer_.when_durable(record("after all"));
  ask("b", record("b"));
  await_recorded(4);
  EXPECT_THAT(heard_, ElementsAre("a", "nothing", "after all", "b"));
}

TEST_P(CommitterTest, CallsBackLaterEvenWhereThereIsNothingToWaitFor) {
  committer_.commit(event::StartRequested{guaranteed("unknown", 1).key}, record("nothing"));
  committer_.commit(event::StartRequested{guaranteed("unknown", 1).key});
  EXPECT_THAT(heard_, IsEmpty());
  await_recorded(1);
  EXPECT_EQ(committer_.ledger().generation(), 0U);
  EXPECT_EQ(store_.begun(), 0U);
}

TEST_P(CommitterTest, TellsOfAGapOnceTheStoreIsBack) {
  store_.fail_with(Error{Code::kUnavailable, "the disk is full"});
  ask("a", record("a"));
  ask("b", record("b"));
  await_recorded(2);
  EXPECT_TRUE(committer_.degraded());
  Scribe scribe("scribe", heard_, nullptr);
  committer_.subscribe(scribe);
  store_.fail_with(std::nullopt);
  loop_.advance(milliseconds(1));
  await_recorded(3);
  EXPECT_FALSE(committer_.degraded());
  EXPECT_THAT(heard_, ElementsAre("a", "b", "scribe 3")) << "the gap has a generation of its own";
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b"));
  EXPECT_EQ(*store_.last_decision(), 3) << "two creates and the gap";
}

/// Writes down what was written.
class WriteWatch final : public Observer {
 public:
  void on_durable(const Transition& transition) override {
    heard.push_back("durable " + std::to_string(transition.generation));
  }
  void on_written(const Transition& transition) override {
    heard.push_back("written " + std::to_string(transition.generation));
  }
  std::vector<std::string> heard;
};

TEST_P(CommitterTest, TellsWhatIsWrittenInTimeBeforeWhoeverWaits) {
  WriteWatch watch;
  committer_.subscribe(watch);
  ask("a", record("a"));
  await_recorded(1);
  EXPECT_THAT(watch.heard, ElementsAre("written 1", "durable 1"));
}

TEST_P(CommitterTest, TellsWhatIsWrittenLateOnceItIs) {
  WriteWatch watch;
  committer_.subscribe(watch);
  store_.fail_with(Error{Code::kUnavailable, "the disk is full"});
  ask("a", record("a"));
  ask("b", record("b"));
  await_recorded(2);
  EXPECT_THAT(watch.heard, ElementsAre("durable 1", "durable 2"));
  store_.fail_with(std::nullopt);
  loop_.advance(milliseconds(1));
  loop_.run_until([&] { return watch.heard.size() == 6; });
  EXPECT_THAT(watch.heard, ElementsAre("durable 1", "durable 2", "written 1", "written 2", "written 3", "durable 3"))
      << "the last is the gap";
}

TEST_P(CommitterTest, CountsOtherSetsForThoseWhoseCreateMayBeUnderWay) {
  const placement::ContainerKey key = besteffort("s").key;
  const auto counted = [this](const Event& event) {
    const std::uint64_t before = committer_.changes_of_pending();
    committer_.commit(event);
    return committer_.changes_of_pending() - before;
  };
  EXPECT_EQ(
      counted(event::CreateAdmitted{
          besteffort("s"), plan_of({placement::Mode::kShared, CpuSet::range(0, 7), {}, {}}, CpuSet::range(0, 7))}),
      0U);
  EXPECT_EQ(counted(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})}), 1U) << "it loses a CPU";
  EXPECT_EQ(counted(event::CreateConfirmed{key, "c-s", {CpuSet::range(1, 7), {}}}), 0U);
  EXPECT_EQ(counted(event::CreateAdmitted{guaranteed("b", 1), exclusive_on({1})}), 0U) << "it is made";
  EXPECT_EQ(counted(event::PodStopped{guaranteed("a", 1).key.sandbox_id}), 1U) << "its create may still be under way";
}

TEST_P(CommitterTest, WritesWhatIsLeftWhenItStopsAndTellsNobody) {
  Scribe scribe("scribe", heard_, nullptr);
  committer_.subscribe(scribe);
  ask("a", record("a"));
  committer_.stop();
  loop_.advance(std::chrono::hours(1));
  EXPECT_THAT(heard_, IsEmpty());
  EXPECT_THAT(store_.holders(), ElementsAre("a"));
}

class CommitterOfItsOwnThread : public CommitterTest {
 protected:
  /// The database is found damaged while what comes from here on waits to be written.
  void lose_the_database() {
    store_.hold();
    store_.fail_with(Error{Code::kDataLoss, "malformed"});
  }
  void await_reopened() {
    store_.release();
    loop_.run_until([this] { return !committer_.reopened_because().empty(); });
    bool written = false;
    committer_.when_durable([&written] { written = true; });
    loop_.run_until([&written] { return written; });
  }
  Allocations in_store() {
    Allocations held;
    const auto rows = store_.allocations();
    for (const store::AllocationRow& row : *rows) held.put(*decode_allocation(row));
    return held;
  }
};

TEST_P(CommitterOfItsOwnThread, RecordsAgainWhatWasHeldBeforeWhatWaits) {
  const placement::ContainerKey a = guaranteed("a", 1).key;
  const placement::ContainerKey b = guaranteed("b", 1).key;
  std::size_t told = 0;
  const auto commit = [&](const Event& event) { committer_.commit(event, [&told] { ++told; }); };
  // Written before the file is lost.
  commit(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})});
  commit(event::CreateConfirmed{a, "c-a", {CpuSet{0}, {}}});
  commit(event::CreateAdmitted{guaranteed("b", 1), exclusive_on({1})});
  loop_.run_until([&] { return told == 3; });
  lose_the_database();
  // The waiting transitions end one of them, move the other, make two new ones, and end one of these.
  commit(event::CreateRefused{b, {Code::kUnknown, "no"}});
  commit(event::Moved{guaranteed("a", 1), exclusive_on({2}), AuditEvent::kReplaced});
  commit(event::CreateAdmitted{guaranteed("c", 1), exclusive_on({0})});
  commit(event::CreateAdmitted{guaranteed("d", 1), exclusive_on({3})});
  commit(event::CreateRefused{guaranteed("c", 1).key, {Code::kUnknown, "no"}});
  await_reopened();
  EXPECT_EQ(in_store(), committer_.ledger().allocations());
  EXPECT_THAT(store_.decided(), ElementsAre("recorded-again a 0", "recorded-again b 1", "re-placed a 2", "placed c 0",
                                            "placed d 3", "gap  "));
  EXPECT_EQ(*store_.last_decision() + 1, committer_.ledger().next_decision());
}

TEST_P(CommitterOfItsOwnThread, RecordsTheSetupAgain) {
  committer_.commit(event::Restarted{false, {}, engine::Setup{7, "1.2.3", "daemon.keep = 30d", "[]"}});
  ask("a", record("a"));
  await_recorded(1);
  lose_the_database();
  // It is the newest by now, and is written twice: among what is recorded again and in its turn.
  committer_.commit(event::SetupChanged{engine::Setup{8, "1.2.3", "daemon.keep = 1d", "[]"}});
  ask("b", record("b"));
  await_reopened();
  EXPECT_EQ(*store_.last_setup(), 8);
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b"));
}

std::string thread_name(const ::testing::TestParamInfo<Writer::Thread>& param) {
  return param.param == Writer::Thread::kOwn ? "OnItsOwnThread" : "OnTheLoop";
}

INSTANTIATE_TEST_SUITE_P(Committer, CommitterTest, ::testing::Values(Writer::Thread::kOwn, Writer::Thread::kLoop),
                         thread_name);
INSTANTIATE_TEST_SUITE_P(Committer, CommitterOfItsOwnThread, ::testing::Values(Writer::Thread::kOwn), thread_name);

}  // namespace
}  // namespace topolet::engine
