// The stream of a ledger, to readers that note what they are sent.
#include "core/watch/feed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/mutex.hpp"
#include "core/engine/state/transitions.hpp"
#include "core/watch/messages.hpp"
#include "tests/engine/ledgers.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/manual_clock.hpp"

namespace topolet::watch {
namespace {

using ::testing::ElementsAre;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// A reader; it reads nothing while `reads` is false.
class Reader final : public cri::OwnCall {
 public:
  explicit Reader(bool reads = true, std::string request = "") : request_(std::move(request)), reads_(reads) {}

  cri::OwnSocket socket() const override { return cri::OwnSocket::kWatch; }
  const std::string& path() const override { return path_; }
  const std::string& request() const override { return request_; }
  void answer(const std::string&) override {}
  void reject(const Error& error) override {
    MutexLock lock(mutex_);
    end_ = error;
  }
  void send(std::shared_ptr<const std::string> message) override {
    MutexLock lock(mutex_);
    if (!reads_) unsent_ += message->size();
    v1::WatchResponse& response = received_.emplace_back();
    EXPECT_TRUE(response.ParseFromString(*message));
  }
  std::size_t unsent_bytes() const override {
    MutexLock lock(mutex_);
    return unsent_;
  }
  void cut_off() override {
    MutexLock lock(mutex_);
    is_cut_off_ = true;
  }
  bool has_ended() const override {
    MutexLock lock(mutex_);
    return is_cut_off_ || end_.has_value();
  }

  std::vector<v1::WatchResponse> received() const {
    MutexLock lock(mutex_);
    return received_;
  }
  std::optional<Error> end() const {
    MutexLock lock(mutex_);
    return end_;
  }
  bool is_cut_off() const {
    MutexLock lock(mutex_);
    return is_cut_off_;
  }

 private:
  const std::string path_ = "/topolet.watch.v1.Watch/Watch";
  const std::string request_;
  const bool reads_;
  mutable Mutex mutex_;
  std::vector<v1::WatchResponse> received_ TOPOLET_GUARDED_BY(mutex_);
  std::size_t unsent_ TOPOLET_GUARDED_BY(mutex_) = 0;
  bool is_cut_off_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::optional<Error> end_ TOPOLET_GUARDED_BY(mutex_);
};

class FeedTest : public ::testing::Test {
 protected:
  Feed::Options options() {
    Feed::Options options;
    options.version = "1";
    options.max_unread_bytes = 2000;
    options.gather = kGather;
    options.pace = kPace;
    options.clock = clock_.clock();
    return options;
  }
  /// After all that is underway.
  void pass(std::chrono::milliseconds time) {
    feed_.run_due();
    clock_.advance(time);
    feed_.run_due();
  }

  std::shared_ptr<Reader> subscribe(bool reads = true) {
    auto reader = std::make_shared<Reader>(reads);
    feed_.subscribe(reader);
    EXPECT_TRUE(eventually([&] { return !reader->received().empty() || reader->end(); }));
    return reader;
  }
  std::shared_ptr<Reader> subscribe_to_load() {
    v1::WatchRequest request;
    request.set_load(true);
    auto reader = std::make_shared<Reader>(true, request.SerializeAsString());
    feed_.subscribe(reader);
    EXPECT_TRUE(eventually([&] { return reader->received().size() == 1; }));
    return reader;
  }
  void measure(std::int64_t used_milli) {
    v1::Load load;
    load.add_nodes()->set_used_milli(used_milli);
    feed_.set_load(load);
    feed_.run_due();
  }
  /// Commits what the event changes.
  void commit(const engine::Event& event) {
    const engine::Transition transition = compute_transition(ledger_, {}, std::chrono::milliseconds(1), event);
    ledger_.apply(transition);
    feed_.on_durable(transition);
  }
  void place(const std::string& name, const CpuSet& cpus) {
    commit(engine::event::CreateAdmitted{engine::guaranteed(name, static_cast<std::int64_t>(cpus.size())),
                                         engine::exclusive_on(cpus)});
  }
  /// How many deltas a reader has been sent.
  static std::size_t deltas(const Reader& reader) {
    std::size_t count = 0;
    for (const v1::WatchResponse& response : reader.received())
      count += static_cast<std::size_t>(response.deltas().deltas_size());
    return count;
  }

  static constexpr std::chrono::milliseconds kGather{10};
  static constexpr std::chrono::milliseconds kPace{100};

  testing::ManualClock clock_;
  engine::Ledger ledger_ = engine::ledger_of({engine::shared("s")});
  Feed feed_{options()};
};

TEST_F(FeedTest, SendsWhatIsMeasuredToThoseWhoAsk) {
  const auto other = subscribe();
  EXPECT_FALSE(feed_.wants_load());
  const auto reader = subscribe_to_load();
  EXPECT_TRUE(feed_.wants_load());
  measure(500);
  ASSERT_THAT(reader->received(), SizeIs(2));
  EXPECT_EQ(reader->received()[1].load().nodes(0).used_milli(), 500);
  EXPECT_THAT(other->received(), SizeIs(1));
  reader->cut_off();
  measure(600);
  EXPECT_FALSE(feed_.wants_load()) << "nobody has it measured who has gone";
  EXPECT_THAT(reader->received(), SizeIs(2));
}

TEST_F(FeedTest, RejectsARequestThatCannotBeRead) {
  const auto reader = std::make_shared<Reader>(true, "\xff");
  feed_.subscribe(reader);
  EXPECT_TRUE(eventually([&] { return reader->end().has_value(); }));
  EXPECT_EQ(reader->end()->code, Code::kInvalidArgument);
}

TEST_F(FeedTest, SendsTheFirstChangeSoonAndThoseThatFollowTogether) {
  feed_.on_loaded(ledger_);
  const auto reader = subscribe();
  place("a", {0});
  pass(kGather - std::chrono::milliseconds(1));
  EXPECT_EQ(deltas(*reader), 0U);
  pass(std::chrono::milliseconds(1));
  EXPECT_EQ(deltas(*reader), 1U);
  place("b", {1});
  pass(kPace - std::chrono::milliseconds(1));
  EXPECT_EQ(deltas(*reader), 1U) << "the second waits for others";
  for (std::uint32_t cpu = 2; cpu < 5; ++cpu) place(std::string(1, static_cast<char>('a' + cpu)), {cpu});
  pass(std::chrono::milliseconds(1));
  EXPECT_EQ(deltas(*reader), 5U);
  EXPECT_THAT(reader->received(), SizeIs(3)) << "the snapshot, the first change, and all others";
}

TEST_F(FeedTest, SendsWhatWaitsWhenItEnds) {
  feed_.on_loaded(ledger_);
  const auto reader = subscribe();
  place("a", {0});
  place("b", {1});
  feed_.stop();
  EXPECT_EQ(deltas(*reader), 2U);
  EXPECT_THAT(reader->received(), SizeIs(2));
}

TEST_F(FeedTest, TellsCapacitiesAsTheyAreAndAsTheyChange) {
  const std::chrono::milliseconds until = std::chrono::minutes(1);
  ledger_.load({}, {}, {{.node = 0, .milli = 500, .until = until, .source = "operator"}});
  feed_.on_loaded(ledger_);
  commit(engine::event::CapacityReported{1, 1500, until, "nrt"});
  const auto reader = subscribe();
  ASSERT_THAT(reader->received(), SizeIs(1));
  const v1::Snapshot snapshot = reader->received()[0].snapshot();
  ASSERT_THAT(snapshot.capacities(), SizeIs(2));
  EXPECT_EQ(snapshot.capacities(0).source(), "operator");
  EXPECT_EQ(snapshot.capacities(1).effective_cpu_milli(), 1500);
  commit(engine::event::CapacityCleared{0, "operator"});
  pass(kGather);
  ASSERT_EQ(deltas(*reader), 1U);
  const v1::Delta delta = reader->received()[1].deltas().deltas(0);
  ASSERT_THAT(delta.capacities_ended(), SizeIs(1));
  EXPECT_EQ(delta.capacities_ended(0), 0U);
  EXPECT_THAT(delta.capacities(), IsEmpty());
  const auto next = subscribe();
  ASSERT_THAT(next->received()[0].snapshot().capacities(), SizeIs(1));
  EXPECT_EQ(next->received()[0].snapshot().capacities(0).node(), 1U);
}

TEST_F(FeedTest, BeginsWithWhatIsDurableThen) {
  feed_.on_loaded(ledger_);
  place("a", {0, 1});
  const auto reader = subscribe();
  ASSERT_THAT(reader->received(), SizeIs(1));
  const v1::Snapshot snapshot = reader->received()[0].snapshot();
  EXPECT_EQ(snapshot.generation(), ledger_.generation());
  EXPECT_EQ(snapshot.cpus().pool(), "2-7");
  EXPECT_FALSE(snapshot.reconciled());
  ASSERT_EQ(snapshot.containers_size(), 2);
  const engine::Ledger& ledger = ledger_;
  for (const v1::Container& container : snapshot.containers()) {
    const bool is_there = std::any_of(ledger.allocations().begin(), ledger.allocations().end(), [&](const auto& entry) {
      return container_of(entry.second).SerializeAsString() == container.SerializeAsString();
    });
    EXPECT_TRUE(is_there) << container.key().name();
  }
}

TEST_F(FeedTest, SendsEachChangeOnceInOrderWhoeverComesInBetween) {
  feed_.on_loaded(ledger_);
  std::vector<std::shared_ptr<Reader>> readers;
  std::vector<std::uint64_t> began;
  for (std::uint32_t i = 0; i < 6; ++i) {
    place("c" + std::to_string(i), {i});
    readers.push_back(subscribe());
    began.push_back(readers.back()->received()[0].snapshot().generation());
  }
  place("last", {6});
  pass(kPace);
  const std::uint64_t last = ledger_.generation();
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const Reader& reader = *readers[i];
    EXPECT_EQ(deltas(reader), last - began[i]) << i;
    std::uint64_t expected = began[i];
    for (const v1::WatchResponse& response : reader.received()) {
      for (const v1::Delta& delta : response.deltas().deltas()) EXPECT_EQ(delta.generation(), ++expected);
    }
    EXPECT_EQ(expected, last);
  }
}

TEST_F(FeedTest, TellsWhoHasEnded) {
  feed_.on_loaded(ledger_);
  place("a", {0});
  const auto reader = subscribe();
  commit(engine::event::CreateWithdrawn{engine::guaranteed("a", 1).key, "cancelled"});
  pass(kGather);
  ASSERT_EQ(deltas(*reader), 1U);
  const v1::Delta delta = reader->received().back().deltas().deltas(0);
  ASSERT_EQ(delta.ended_size(), 1);
  EXPECT_EQ(delta.ended(0).name(), "a");
  EXPECT_EQ(delta.cpus().pool(), "0-7");
  EXPECT_EQ(subscribe()->received()[0].snapshot().containers_size(), 1);
}

TEST_F(FeedTest, CutsOffWhoDoesNotReadAndNobodyElse) {
  feed_.on_loaded(ledger_);
  const auto lazy = subscribe(false);
  const auto eager = subscribe();
  for (std::uint32_t i = 0; i < 60 && !lazy->is_cut_off(); ++i) {
    place("a" + std::to_string(i), {i % 4});
    commit(engine::event::CreateWithdrawn{engine::guaranteed("a" + std::to_string(i), 1).key, "cancelled"});
    pass(kPace);
  }
  EXPECT_TRUE(lazy->is_cut_off());
  EXPECT_GT(lazy->unsent_bytes(), 2000U);
  EXPECT_LT(lazy->unsent_bytes(), 6000U);
  EXPECT_FALSE(eager->is_cut_off());
}

TEST_F(FeedTest, TellsThatTheLedgerIsReconciledAndWhichPluginsThereAre) {
  feed_.on_loaded(ledger_);
  const auto reader = subscribe();
  feed_.on_reconciled();
  v1::PluginList plugins;
  plugins.add_plugins()->set_id("numa");
  feed_.set_plugins(plugins);
  pass(kGather);
  ASSERT_EQ(deltas(*reader), 2U);
  const v1::Snapshot now = subscribe()->received()[0].snapshot();
  EXPECT_TRUE(now.reconciled());
  ASSERT_EQ(now.plugins_size(), 1);
  EXPECT_EQ(now.plugins(0).id(), "numa");
}

TEST_F(FeedTest, TellsWhatIsIllToThoseWhoAreThereAndThoseWhoCome) {
  feed_.on_loaded(ledger_);
  const auto reader = subscribe();
  EXPECT_FALSE(reader->received()[0].snapshot().has_illnesses()) << "nobody has looked yet";
  v1::IllnessList illnesses;
  illnesses.add_illnesses()->set_code("plugin-late");
  feed_.set_illnesses(illnesses);
  pass(kGather);
  ASSERT_EQ(deltas(*reader), 1U);
  EXPECT_EQ(reader->received()[1].deltas().deltas(0).illnesses().illnesses(0).code(), "plugin-late");
  EXPECT_EQ(subscribe()->received()[0].snapshot().illnesses().illnesses_size(), 1);
  feed_.set_illnesses({});
  pass(kPace);
  const v1::Snapshot well = subscribe()->received()[0].snapshot();
  EXPECT_TRUE(well.has_illnesses());
  EXPECT_EQ(well.illnesses().illnesses_size(), 0);
}

TEST_F(FeedTest, EndsItsStreamsAndTakesNoMore) {
  feed_.on_loaded(ledger_);
  const auto reader = subscribe();
  feed_.stop();
  ASSERT_TRUE(reader->end());
  EXPECT_EQ(reader->end()->code, Code::kUnavailable);
  place("a", {0});
  EXPECT_EQ(deltas(*reader), 0U);
}

TEST(PendingContainerTest, IsReadWithItsAnnotations) {
  v1::PendingContainer pending;
  pending.set_pod_uid("u");
  pending.set_name("main");
  pending.set_qos("guaranteed");
  pending.set_cpu_request_milli(2000);
  (*pending.mutable_annotations())["topolet.io/cpus"] = "shared";
  (*pending.mutable_annotations())["example.com/x"] = "y";
  const auto workload = workload_of(pending);
  ASSERT_TRUE(workload.has_value());
  EXPECT_EQ(workload->demand.cpu_request_milli, 2000);
  EXPECT_EQ(workload->pod_annotations.at("topolet.io/cpus"), "shared");
  EXPECT_FALSE(workload->pod_demand.has_value()) << "nobody has told";
  pending.set_pod_cpu_request_milli(2100);
  pending.set_pod_memory_bytes(4096);
  const auto in_pod = workload_of(pending);
  ASSERT_TRUE(in_pod->pod_demand.has_value());
  EXPECT_EQ(in_pod->pod_demand->cpu_request_milli, 2100);
  EXPECT_EQ(in_pod->pod_demand->memory_request_bytes, 4096);
  pending.set_qos("burstable");
  EXPECT_EQ(workload_of(pending)->pod_demand->memory_request_bytes, 0);
  EXPECT_EQ(workload_of(pending)->pod_demand->memory_limit_bytes, 4096);
  pending.set_qos("guaranteed");
  pending.add_after("init");
  v1::FitsRequest request;
  *request.add_pending() = pending;
  EXPECT_THAT(pending_of(request)->at(0).after, ElementsAre("init"));
  EXPECT_EQ(pending_of(request)->at(0).grows, "") << "who does not know the field tells of a container of its own";
  request.mutable_pending(0)->set_grows("other");
  EXPECT_EQ(pending_of(request)->at(0).grows, "other");
  pending.set_qos("Guaranteed");
  EXPECT_THAT(workload_of(pending).error().message, HasSubstr("has the QoS class 'Guaranteed'"));
  pending.set_qos("guaranteed");
  pending.clear_name();
  EXPECT_THAT(workload_of(pending).error().message, HasSubstr("needs pod_uid and name"));
}

}  // namespace
}  // namespace topolet::watch
