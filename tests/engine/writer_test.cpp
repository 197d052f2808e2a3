#include "core/engine/state/writer.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "tests/engine/faulty_store.hpp"
#include "tests/engine/waiting_loop.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Error kBusy{Code::kUnavailable, "the disk is full"};
const Error kNotThere{Code::kNotFound, "no such decision"};

/// Stores an allocation that holds `name`.
Status put(store::Store& store, const std::string& name) {
  store::DecidedRow row;
  row.event = "placed";
  const auto decision = store.add(row);
  if (!decision) return decision.error();
  return store.put_allocation(*decision, {{"container", name},
                                          {"state", std::string("pending")},
                                          {"container_id", std::string()},
                                          {"cpus", std::string()},
                                          {"pending_since_ms", std::int64_t{0}}});
}

class WriterTest : public ::testing::TestWithParam<Writer::Thread> {
 protected:
  void begin(milliseconds retry = milliseconds(1)) {
    writer_ = std::make_unique<Writer>(
        Writer::Options{GetParam(), milliseconds(50), retry}, store_, loop_, loop_.clock(), *log_,
        Writer::Callbacks{.recovered = [this](const Writer::Gap& gap) { gaps_.push_back(gap); }});
  }

  void submit(const std::string& name, Urgency urgency = Urgency::kNow) {
    submit(
        name, [name](store::Store& store) { return put(store, name); }, urgency);
  }
  void submit(const std::string& name, Writer::Write write, Urgency urgency = Urgency::kNow) {
    writer_->submit(
        ++generation_, std::move(write), [this, name] { heard_.push_back(name); }, urgency);
  }
  void await_recorded(std::size_t count) {
    loop_.run_until([this, count] { return heard_.size() >= count; });
  }
  /// The store fails no more.
  void mend() {
    store_.fail_with(std::nullopt);
    loop_.advance(milliseconds(1));
    loop_.run_until([this] { return !writer_->degraded(); });
  }

  FaultyStore store_;
  WaitingLoop loop_;
  const std::shared_ptr<Log> log_ = make_silent_log();
  std::vector<std::string> heard_;
  std::vector<Writer::Gap> gaps_;
  std::uint64_t generation_ = 0;
  std::unique_ptr<Writer> writer_;
};

/// On a thread of its own, which can be held up.
class WriterOfItsOwnThread : public WriterTest {};

TEST_P(WriterTest, TellsInOrderOnceItIsWritten) {
  begin();
  for (const char* name : {"a", "b", "c"}) submit(name);
  EXPECT_FALSE(writer_->idle());
  await_recorded(3);
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c"));
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(writer_->idle());
  EXPECT_EQ(store_.noted(), 3U);
  EXPECT_FALSE(writer_->degraded());
}

TEST_P(WriterTest, WritesAlsoWhatNothingWaitsFor) {
  begin();
  submit("a", Urgency::kSoon);
  submit("b", Urgency::kSoon);
  EXPECT_FALSE(writer_->idle());
  loop_.advance(milliseconds(2));
  await_recorded(2);
  EXPECT_THAT(heard_, ElementsAre("a", "b"));
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b"));
  EXPECT_FALSE(writer_->degraded());
}

TEST_P(WriterTest, WritesWhatNothingWaitsForAtTheEnd) {
  begin();
  submit("a", Urgency::kSoon);
  writer_->stop();
  EXPECT_THAT(store_.holders(), ElementsAre("a"));
}

TEST_P(WriterTest, TellsNobodyFromInsideOfASubmission) {
  begin();
  submit("a");
  EXPECT_THAT(heard_, IsEmpty());
}

TEST_P(WriterTest, TellsInOrderThoughMoreIsSubmittedMeanwhile) {
  begin();
  writer_->submit(
      ++generation_, [](store::Store& store) { return put(store, "a"); },
      [this] {
        heard_.emplace_back("a");
        submit("c");
      });
  submit("b");
  await_recorded(3);
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c"));
}

TEST_P(WriterTest, DropsAWriteThatCanNeverSucceedWholeAndNoOther) {
  begin();
  if (GetParam() == Writer::Thread::kOwn) store_.hold();
  submit("a");
  submit("b", [](store::Store& store) {
    const Status written = put(store, "b");
    return written ? Status(kNotThere) : written;
  });
  submit("c");
  store_.release();
  await_recorded(3);
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c"));
  EXPECT_THAT(store_.holders(), ElementsAre("a", "c"));
  EXPECT_FALSE(writer_->degraded());
}

TEST_P(WriterTest, GoesOnFromMemoryWhileTheStoreFails) {
  begin();
  store_.fail_with(kBusy);
  submit("a");
  await_recorded(1);
  EXPECT_TRUE(writer_->degraded());
  submit("b");
  submit("c");
  await_recorded(3);
  EXPECT_THAT(gaps_, IsEmpty());
  EXPECT_EQ(store_.noted(), 3U) << "the next start sees that something is missing";
  mend();
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c")) << "each once";
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b", "c")) << "each once";
  ASSERT_EQ(gaps_.size(), 1U);
  EXPECT_EQ(gaps_.front().writes_late, 3U);
}

TEST_P(WriterTest, HoldsUpAllWhileOneCannotBeWrittenForNow) {
  begin();
  if (GetParam() == Writer::Thread::kOwn) store_.hold();
  bool fails = true;
  Mutex mutex;
  submit("a");
  submit("b", [&](store::Store& store) {
    const MutexLock lock(mutex);
    const Status written = put(store, "b");
    return fails ? Status(kBusy) : written;
  });
  submit("c");
  store_.release();
  await_recorded(3);
  EXPECT_TRUE(writer_->degraded());
  {
    const MutexLock lock(mutex);
    fails = false;
  }
  mend();
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c"));
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b", "c"));
  ASSERT_EQ(gaps_.size(), 1U);
}

TEST_P(WriterTest, CountsALaterGapAnew) {
  begin();
  for (const std::string name : {"a", "b"}) {
    store_.fail_with(kBusy);
    submit(name);
    loop_.run_until([this] { return writer_->degraded() && writer_->idle(); });
    mend();
  }
  ASSERT_EQ(gaps_.size(), 2U);
  EXPECT_EQ(gaps_.back().writes_late, 1U);
  submit("c");
  await_recorded(3);
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b", "c"));
}

TEST_P(WriterTest, WritesWhatIsLeftWhenItIsStoppedAndTellsNobody) {
  begin();
  for (const char* name : {"a", "b", "c"}) submit(name);
  writer_->stop();
  writer_->stop();
  loop_.advance(milliseconds(1000));
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(heard_, IsEmpty());
}

TEST_P(WriterTest, WritesWhatFailedBeforeWhenItIsStopped) {
  begin(std::chrono::hours(1));
  store_.fail_with(kBusy);
  submit("a");
  await_recorded(1);
  submit("b");
  store_.fail_with(std::nullopt);
  writer_->stop();
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b"));
}

TEST_P(WriterTest, EndsThoughTheStoreStillFails) {
  begin(std::chrono::hours(1));
  store_.fail_with(kBusy);
  submit("a");
  await_recorded(1);
  writer_.reset();
  EXPECT_THAT(store_.holders(), IsEmpty());
}

TEST_P(WriterTest, CallsNothingAfterItsEnd) {
  begin();
  store_.fail_with(kBusy);
  submit("a");
  submit("b");
  writer_.reset();
  store_.fail_with(std::nullopt);
  loop_.advance(std::chrono::hours(1));
  EXPECT_THAT(heard_, IsEmpty());
  EXPECT_THAT(gaps_, IsEmpty());
}

TEST_P(WriterOfItsOwnThread, WritesWhatHasComeMeanwhileInOneTransaction) {
  begin();
  store_.hold();
  submit("a");
  store_.wait_until_held();
  for (const char* name : {"b", "c", "d"}) submit(name);
  store_.release();
  await_recorded(4);
  EXPECT_EQ(store_.begun(), 2U);
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b", "c", "d"));
}

TEST_P(WriterOfItsOwnThread, WritesTogetherWhatNothingWaitsForAndWhatComesWithIt) {
  begin();
  submit("a", Urgency::kSoon);
  submit("b", Urgency::kSoon);
  await_recorded(2);
  EXPECT_EQ(store_.begun(), 1U);
  submit("c", Urgency::kSoon);
  submit("d");
  await_recorded(4);
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(store_.begun(), 2U);
}

TEST_P(WriterOfItsOwnThread, TriesAgainThoughNothingWaitsForWhatFailed) {
  begin();
  store_.fail_with(kBusy);
  submit("a", Urgency::kSoon);
  loop_.advance(milliseconds(2));
  loop_.run_until([this] { return writer_->degraded(); });
  mend();
  EXPECT_THAT(store_.holders(), ElementsAre("a"));
}

TEST_P(WriterOfItsOwnThread, WaitsAsLongAsItsPatience) {
  begin();
  store_.hold();
  submit("a");
  loop_.advance(milliseconds(30));
  submit("b");
  loop_.advance(milliseconds(19));
  EXPECT_THAT(heard_, IsEmpty());
  EXPECT_FALSE(writer_->degraded());
  loop_.advance(milliseconds(1));
  EXPECT_THAT(heard_, ElementsAre("a", "b")) << "what comes behind goes on from memory too";
  EXPECT_TRUE(writer_->degraded());
  EXPECT_EQ(store_.noted(), 2U) << "the next start sees that something is missing";
  submit("c");
  loop_.run();
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c"));
  loop_.advance(milliseconds(70));
  store_.release();
  mend();
  EXPECT_THAT(store_.holders(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c"));
  ASSERT_EQ(gaps_.size(), 1U);
  EXPECT_EQ(gaps_.front().writes_late, 3U);
  EXPECT_GE(gaps_.front().duration, milliseconds(70));
}

TEST_P(WriterOfItsOwnThread, SaysWhyItWasLateOnceThatIsKnown) {
  begin();
  store_.hold();
  submit("a");
  loop_.advance(milliseconds(50));
  EXPECT_THAT(writer_->degraded_because(), ::testing::HasSubstr("takes longer than 50 ms"));
  store_.fail_with(Error{Code::kResourceExhausted, "the disk is full"});
  store_.release();
  loop_.run_until([this] { return writer_->degraded_because() == "cannot be written: the disk is full"; });
  mend();
}

TEST_P(WriterOfItsOwnThread, IsPatientWithEachAgain) {
  begin();
  submit("a");
  loop_.advance(milliseconds(40));
  await_recorded(1);
  store_.hold();
  submit("b");
  store_.wait_until_held();
  loop_.advance(milliseconds(49));
  EXPECT_THAT(heard_, ElementsAre("a"));
  store_.release();
  await_recorded(2);
  EXPECT_FALSE(writer_->degraded());
}

/// A writer whose new database begins with a container "again".
class LosingWriter : public WriterTest {
 protected:
  void begin() {
    writer_ = std::make_unique<Writer>(
        Writer::Options{GetParam(), milliseconds(50), milliseconds(1)}, store_, loop_, loop_.clock(), *log_,
        Writer::Callbacks{
            .recovered = [this](const Writer::Gap& gap) { gaps_.push_back(gap); },
            .rewrite =
                [this](const store::FileLoss&) {
                  written_at_rewrite_ = writer_->written();
                  return Writer::Rewrite{{}, {}, [](store::Store& store) { return put(store, "again"); }};
                },
            .reopened = [this](const Writer::Reopened& reopened) { reopened_.push_back(reopened.loss.what); }});
  }
  void await_reopened() {
    loop_.run_until([this] { return !reopened_.empty(); });
  }

  std::uint64_t written_at_rewrite_ = 0;
  std::vector<std::string> reopened_;
};

TEST_P(LosingWriter, BeginsAnewWhatIsGoneThoughNothingIsWritten) {
  begin();
  submit("a");
  await_recorded(1);
  store_.lose({"it was removed", store::Leftover::kReplaced});
  await_reopened();
  EXPECT_EQ(written_at_rewrite_, 1U);
  EXPECT_THAT(reopened_, ElementsAre("it was removed"));
  submit("b");
  await_recorded(2);
  EXPECT_THAT(store_.holders(), ElementsAre("again", "b"));
  EXPECT_FALSE(writer_->degraded());
}

TEST_P(LosingWriter, BeginsAnewWhatAWriteFindsDamagedAndWritesItThere) {
  begin();
  submit("a");
  await_recorded(1);
  store_.fail_with(Error{Code::kDataLoss, "malformed"});
  submit("b");
  await_recorded(2);
  await_reopened();
  EXPECT_EQ(written_at_rewrite_, 1U);
  EXPECT_EQ(store_.reopened().front().leftover, store::Leftover::kDamaged);
  EXPECT_THAT(store_.holders(), ElementsAre("again", "b"));
}

TEST_P(LosingWriter, BeginsAnewWhatContradictsItselfAgainAndAgain) {
  begin();
  store_.fail_with(Error{Code::kFailedPrecondition, "rows are never replaced"});
  submit("a");
  await_recorded(1);
  await_reopened();
  loop_.run_until([this] { return !writer_->degraded(); });
  EXPECT_THAT(store_.holders(), ElementsAre("again", "a"));
}

TEST_P(LosingWriter, KeepsAFileThatIsOnlyFull) {
  begin();
  store_.fail_with(Error{Code::kResourceExhausted, "the disk is full"});
  submit("a");
  loop_.run_until([this] { return store_.begun() > 10; });
  EXPECT_THAT(store_.reopened(), IsEmpty());
}

TEST_P(LosingWriter, EndsWhileItsFileIsGone) {
  begin();
  store_.lose({"it was removed", store::Leftover::kReplaced});
  submit("a");
  EXPECT_TRUE(writer_->stop()) << "nobody answers it any more";
}

TEST_P(WriterOfItsOwnThread, TidiesTheHistoryUpInSlicesThatAreShort) {
  store_.need_retention_passes(12, milliseconds(5));
  begin();
  submit("a");
  await_recorded(1);
  while (store_.retention_passes().size() < 12) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_THAT(store_.holders(), ElementsAre("a"));
  const std::vector<std::int64_t> rows = store_.retention_passes();
  EXPECT_TRUE(std::is_sorted(rows.rbegin(), rows.rend())) << "what takes too long is made smaller";
  EXPECT_LT(rows.back(), rows.front());
  EXPECT_GT(rows.back(), 0);
}

TEST_P(WriterOfItsOwnThread, TakesSlicesWithoutWorkForNoReasonToMakeThemLonger) {
  store_.need_retention_passes(12, milliseconds(0), false);
  begin();
  while (store_.retention_passes().size() < 12) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(store_.retention_passes().back(), store_.retention_passes().front());
}

TEST_P(WriterOfItsOwnThread, LeavesAStoreBehindThatDoesNotReturn) {
  // The objects that its thread uses stay: it comes back to them when the test is over.
  writer_ =
      std::make_unique<Writer>(Writer::Options{GetParam(), milliseconds(50), milliseconds(1), milliseconds(10)}, store_,
                               loop_, loop_.clock(), *log_, Writer::Callbacks{.recovered = [](const Writer::Gap&) {}});
  store_.hold();
  submit("a");
  store_.wait_until_held();
  EXPECT_FALSE(writer_->stop());
  store_.release();
  loop_.run_until([this] { return store_.noted() == 1; });
  while (!writer_->stop()) {
  }
}

std::string name_of_thread(const ::testing::TestParamInfo<Writer::Thread>& info) {
  return info.param == Writer::Thread::kOwn ? "OnItsOwnThread" : "OnTheLoop";
}

INSTANTIATE_TEST_SUITE_P(Writer, WriterTest, ::testing::Values(Writer::Thread::kOwn, Writer::Thread::kLoop),
                         name_of_thread);
INSTANTIATE_TEST_SUITE_P(Writer, LosingWriter, ::testing::Values(Writer::Thread::kOwn), name_of_thread);
INSTANTIATE_TEST_SUITE_P(Writer, WriterOfItsOwnThread, ::testing::Values(Writer::Thread::kOwn), name_of_thread);

}  // namespace
}  // namespace topolet::engine
