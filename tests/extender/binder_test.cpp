// How many binds the API server is given at once, and what becomes of those that wait.
#include "cluster/extender/binder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "tests/extender/support.hpp"
#include "tests/extender/virtual_clock.hpp"

namespace topolet::extender {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Lists are empty and answered at once, Bindings when the test says so.
class SlowApi final : public api::Api {
 public:
  explicit SlowApi(VirtualClock& clock) : clock_(clock) {}
  void request(api::ApiRequest request, OnAnswer on_answer) override {
    api::ApiAnswer answer;
    answer.status = is_memory_too_old && request.path.find("NotOlderThan") != std::string::npos ? 504 : 200;
    answer.body = {{"metadata", {{"resourceVersion", "7"}}}, {"items", json::array()}};
    if (request.verb == "get") answer = {};  // no answer
    if (request.verb == "list") lists.push_back(request.path);
    if (request.verb != "create") return on_answer(answer);
    bindings.push_back(request.path);
    is_last_wanted = request.is_still_wanted;
    waiting_.push_back(std::move(on_answer));
  }
  void after(Milliseconds delay, std::function<void()> task) override { clock_.after(delay, std::move(task)); }
  Clock::time_point now() const override { return clock_.now(); }

  std::size_t underway() const { return waiting_.size(); }
  void answer_one(int status = 201) {
    if (waiting_.empty()) return;
    const OnAnswer on_answer = std::move(waiting_.front());
    waiting_.pop_front();
    api::ApiAnswer answer;
    answer.status = status;
    on_answer(answer);
  }

  bool is_memory_too_old = false;
  std::vector<std::string> lists;
  std::vector<std::string> bindings;  ///< the paths of all that were sent
  std::function<bool()> is_last_wanted;

 private:
  VirtualClock& clock_;
  std::deque<OnAnswer> waiting_;
};

class BinderTest : public ::testing::Test {
 protected:
  BinderTest() {
    options_.most_underway = 3;
    binder_.emplace(
        api_, shared_, recent_, options_, [] { return Milliseconds(4000); }, *log_);
    MutexLock lock(shared_.mutex);
    shared_.is_synced = true;
    for (int i = 0; i < 100; ++i) {
      const NodeSpec node{.name = fmt::format("n{}", i), .zones = {{4}}};
      shared_.book.set_node(read_node_zones(topology_object(node), shared_.book.names()));
    }
  }
  void bind(int number) {
    const std::string name = fmt::format("pod-{}", number);
    json pod = pod_object(name, {{}});
    pod["metadata"]["uid"] = name;
    recent_.add(name, name, read_demand_of(pod, {}, shared_));
    binder_->bind({name, "default", name, fmt::format("n{}", number)},
                  [this, number](const std::string& error) { answers_[number] = error; });
  }
  void pass(int milliseconds) { clock_.run_until(clock_.now() + Milliseconds(milliseconds)); }

  const std::shared_ptr<Log> log_ = make_silent_log();
  VirtualClock clock_;
  SlowApi api_{clock_};
  SharedBook shared_;
  RecentDemands recent_;
  Binder::Options options_;
  std::optional<Binder> binder_;
  std::map<int, std::string> answers_;  ///< by pod: empty, it is bound; else why not
};

TEST_F(BinderTest, GivesTheApiServerSoManyBindsAtOnceAndTheOthersInTurn) {
  binder_->begin();
  for (int i = 0; i < 10; ++i) bind(i);
  EXPECT_EQ(api_.underway(), 3u);
  EXPECT_TRUE(shared_.has_waiting_binds);
  for (int i = 0; i < 7; ++i) {
    api_.answer_one();
    EXPECT_EQ(api_.underway(), 3u) << i;
  }
  EXPECT_FALSE(shared_.has_waiting_binds) << "nobody waits";
  while (api_.underway() > 0) api_.answer_one();
  EXPECT_EQ(answers_.size(), 10u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(answers_[i], "");
    EXPECT_THAT(api_.bindings.at(static_cast<std::size_t>(i)), HasSubstr(fmt::format("/pod-{}/", i)))
        << "in their order";
  }
  EXPECT_FALSE(binder_->has_binds_underway());
}

TEST_F(BinderTest, TellsWhoHasWaitedTooLongAndPromisesHimNothing) {
  binder_->begin();
  for (int i = 0; i < 5; ++i) bind(i);
  pass(4800);
  ASSERT_EQ(answers_.size(), 2u) << "the API server has not answered the other three";
  EXPECT_THAT(answers_[3], HasSubstr("more pods are bound at once than the API server is fast enough for"));
  EXPECT_THAT(answers_[4], HasSubstr("more pods"));
  EXPECT_FALSE(shared_.has_waiting_binds);
  {
    MutexLock lock(shared_.mutex);
    EXPECT_EQ(shared_.book.promise_count(), 3u);
  }
  while (api_.underway() > 0) api_.answer_one();
  EXPECT_EQ(api_.bindings.size(), 3u);
}

TEST_F(BinderTest, HoldsUpASchedulerUntilNobodyWaits) {
  binder_->begin();
  int held = 0;
  binder_->when_none_waits([&] { ++held; });
  EXPECT_EQ(held, 1) << "at once";
  for (int i = 0; i < 5; ++i) bind(i);
  binder_->when_none_waits([&] { ++held; });
  EXPECT_EQ(held, 1);
  api_.answer_one();
  EXPECT_EQ(held, 1);
  api_.answer_one();
  EXPECT_EQ(held, 2);
  pass(2000);
  EXPECT_EQ(held, 2) << "once";
}

TEST_F(BinderTest, HoldsNobodyUpForLong) {
  binder_->begin();
  for (int i = 0; i < 5; ++i) bind(i);
  int held = 0;
  binder_->when_none_waits([&] { ++held; });
  pass(990);
  EXPECT_EQ(held, 0);
  pass(20);
  EXPECT_EQ(held, 1);
  while (api_.underway() > 0) api_.answer_one();
  EXPECT_EQ(held, 1) << "once";
}

TEST_F(BinderTest, BeginsNoneThatHasLittleTimeLeft) {
  binder_->begin();
  for (int i = 0; i < 5; ++i) bind(i);
  pass(3800);
  api_.answer_one();
  EXPECT_EQ(answers_.size(), 3u);
  EXPECT_THAT(answers_[3], HasSubstr("more pods are bound at once"));
  EXPECT_EQ(api_.bindings.size(), 3u);
}

TEST_F(BinderTest, SendsNoBindingWhenItsSchedulerWaitsNoLonger) {
  binder_->begin();
  bind(0);
  EXPECT_TRUE(api_.is_last_wanted());
  pass(800);
  EXPECT_TRUE(api_.is_last_wanted());
  pass(200);
  EXPECT_FALSE(api_.is_last_wanted()) << "4 s for it would end after 5";
}

TEST_F(BinderTest, ReadsANodesPodsOnceATermAndAnewWhereTheServersMemoryIsTooOld) {
  const std::string from_memory = "&resourceVersionMatch=NotOlderThan&resourceVersion=7";
  binder_->begin();
  bind(0);
  bind(0);
  ASSERT_EQ(api_.lists.size(), 2u);
  EXPECT_THAT(api_.lists[0], HasSubstr("status.phase%3DPending"));
  EXPECT_THAT(api_.lists[1], HasSubstr("spec.nodeName%3Dn0"));
  EXPECT_THAT(api_.lists[1], HasSubstr(from_memory));
  api_.is_memory_too_old = true;
  bind(1);
  ASSERT_EQ(api_.lists.size(), 4u);
  EXPECT_THAT(api_.lists[2], HasSubstr(from_memory));
  EXPECT_THAT(api_.lists[3], ::testing::AllOf(HasSubstr("spec.nodeName%3Dn1"), ::testing::Not(HasSubstr(from_memory))));
  while (api_.underway() > 0) api_.answer_one();
  EXPECT_EQ(answers_[1], "");
}

TEST_F(BinderTest, IsNotDoneWhileABindingMayStillBeCarriedOut) {
  binder_->begin();
  bind(0);
  EXPECT_TRUE(binder_->has_binds_underway());
  api_.answer_one(0);
  EXPECT_EQ(answers_.count(0), 1u);
  EXPECT_TRUE(binder_->has_binds_underway()) << "it may have arrived";
  pass(1000);
  EXPECT_FALSE(binder_->has_binds_underway());
}

TEST_F(BinderTest, LetsAllGoWhenItLeadsNoMore) {
  binder_->begin();
  for (int i = 0; i < 5; ++i) bind(i);
  int held = 0;
  binder_->when_none_waits([&] { ++held; });
  binder_->end();
  EXPECT_EQ(held, 1);
  EXPECT_THAT(answers_[3], HasSubstr("does not lead"));
  EXPECT_THAT(answers_[4], HasSubstr("does not lead"));
  EXPECT_EQ(answers_.count(0), 0u) << "that may be bound";
}

TEST_F(BinderTest, BindsNothingWhereItDoesNotLead) {
  bind(0);
  EXPECT_THAT(answers_[0], HasSubstr("does not lead"));
  EXPECT_THAT(api_.bindings, IsEmpty());
}

}  // namespace
}  // namespace topolet::extender
