// Which pods schedulers are made to try again, and how often.
#include "cluster/extender/waker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/extender/support.hpp"
#include "tests/extender/virtual_clock.hpp"

namespace topolet::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PatchApi final : public api::Api {
 public:
  explicit PatchApi(VirtualClock& clock) : clock_(clock) {}
  void request(api::ApiRequest request, OnAnswer on_answer) override {
    patched.push_back(request.path.substr(std::string("/api/v1/nodes/").size()));
    api::ApiAnswer answer;
    answer.status = refused > 0 ? 404 : 200;
    refused -= refused > 0 ? 1 : 0;
    on_answer(answer);
  }
  void after(Milliseconds delay, std::function<void()> task) override { clock_.after(delay, std::move(task)); }
  Clock::time_point now() const override { return clock_.now(); }

  std::vector<std::string> patched;
  int refused = 0;

 private:
  VirtualClock& clock_;
};

class ExtenderWakerTest : public ::testing::Test {
 protected:
  void publish(const std::string& name, int cpus, const std::string& policy = "none") {
    MutexLock lock(shared_.mutex);
    const NodeSpec node{
        .name = name, .zones = {{.available = cpus, .allocatable = 8}}, .policy = policy, .version = ++version_};
    shared_.book.set_node(read_node_zones(topology_object(node), shared_.book.names()));
    shared_.is_synced = true;
  }
  void hear(const std::string& name, bool is_heard) {
    MutexLock lock(shared_.mutex);
    shared_.book.set_silent(name, !is_heard);
  }
  void reject(const std::string& uid, int cpus, const std::vector<std::string_view>& nodes) {
    json pod = pod_object("pod-" + uid, {{.cpu = std::to_string(cpus)}});
    pod["metadata"]["uid"] = uid;
    const auto demand = read_demand_of(pod, {}, shared_);
    MutexLock lock(shared_.mutex);
    shared_.waiting.reject(**demand, nodes, clock_.now());
  }
  void pass(Milliseconds time) { clock_.run_until(clock_.now() + time); }
  void begin() {
    publish("n1", 0);
    publish("n2", 0);
    waker_.begin();
    pass(Milliseconds(2500));
    EXPECT_THAT(api_.patched, ElementsAre("n1")) << "whom the leader before has rejected is not known";
    api_.patched.clear();
  }

  const std::shared_ptr<Log> log_ = make_silent_log();
  VirtualClock clock_;
  PatchApi api_{clock_};
  SharedBook shared_;
  std::atomic<std::uint64_t> wake_ups_{0};
  Waker waker_{api_, shared_, wake_ups_, *log_};
  std::uint64_t version_ = 0;
};

TEST_F(ExtenderWakerTest, OnlyForPodsThatWereRejectedAndWouldFitNow) {
  begin();
  reject("a", 4, {"n1", "n2"});
  publish("n2", 3);
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, IsEmpty()) << "it is too little";
  publish("n2", 4);
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, ElementsAre("n2"));
  publish("n2", 5);
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, SizeIs(1)) << "no scheduler has asked for it since";
  reject("a", 8, {"n1"});
  publish("n2", 8);
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, ElementsAre("n2", "n2")) << "it was rejected there before";
  EXPECT_EQ(wake_ups_, 3U);
}

TEST_F(ExtenderWakerTest, OnceASecondAndLessOftenWhereManyWait) {
  begin();
  for (int i = 0; i < 2000; ++i) {
    if (i % 100 == 0) pass(Milliseconds(100));
    reject("a", 4, {"n1"});
    publish("n1", i % 2 == 0 ? 0 : 4);
  }
  EXPECT_THAT(api_.patched.size(), ::testing::Le(3U));
  for (int i = 0; i < 500; ++i) reject(std::to_string(i), 4, {"n1"});
  api_.patched.clear();
  for (int i = 0; i < 20; ++i) {
    reject("a", 4, {"n1"});
    publish("n1", 0);
    publish("n1", 4);
    pass(std::chrono::seconds(1));
  }
  EXPECT_THAT(api_.patched.size(), ::testing::Le(6U)) << "every five seconds";
  EXPECT_THAT(api_.patched.size(), ::testing::Ge(3U));
}

TEST_F(ExtenderWakerTest, ANodeThatIsGoneIsNoReasonToWakeNobody) {
  publish("n1", 0);
  publish("n2", 0);
  api_.refused = 1;
  waker_.begin();
  pass(std::chrono::seconds(10));
  EXPECT_THAT(api_.patched, ElementsAre("n1", "n2"));
}

TEST_F(ExtenderWakerTest, ForANodeThatIsHeardOfAgainAndOneThatEnforcesSomethingElse) {
  begin();
  publish("n1", 8);
  hear("n1", false);
  reject("a", 4, {"n1", "n2"});
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, IsEmpty());
  hear("n1", true);
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, ElementsAre("n1"));
  hear("n1", true);
  reject("a", 4, {"n1", "n2"});
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, SizeIs(1)) << "it is nothing new";
  publish("n1", 8, "best-effort");
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, SizeIs(2));
}

TEST_F(ExtenderWakerTest, OnceForANodeThatBeginsToPublishThoughNobodyWasAskedForIt) {
  begin();
  reject("a", 4, {"n1", "n2"});
  publish("n3", 8);
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, ElementsAre("n3"));
  reject("a", 4, {"n1", "n2"});
  publish("n3", 4);
  publish("n3", 8);
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, SizeIs(1)) << "it was there, and is none for the pod";
}

TEST_F(ExtenderWakerTest, OnceForAllNodesThatWereThereWhenItBegan) {
  for (int i = 1; i < 9; ++i) publish("n" + std::to_string(i), i == 1 ? 0 : 8);
  waker_.begin();
  pass(Milliseconds(1500));
  for (int i = 0; i < 20; ++i) {
    reject("a", 4, {"n1"});
    pass(std::chrono::seconds(1));
  }
  EXPECT_THAT(api_.patched, SizeIs(1));
}

TEST_F(ExtenderWakerTest, NobodyWhoDoesNotLead) {
  begin();
  reject("a", 4, {"n1"});
  waker_.end();
  publish("n1", 8);
  pass(std::chrono::seconds(5));
  EXPECT_THAT(api_.patched, IsEmpty());
}

}  // namespace
}  // namespace topolet::extender
