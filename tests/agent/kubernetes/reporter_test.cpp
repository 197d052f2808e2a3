// What the agent writes to the API server: a real topoletd, and a server that can be told to misbehave.
#include "cluster/agent/kubernetes/reporter.hpp"

#include <fmt/chrono.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <mutex>

#include "cluster/agent/kubernetes/zones.hpp"
#include "tests/cluster_api/apiserver.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using StandIn = topolet::testing::ApiServer;

const std::string kPods = "/api/v1/pods";
const std::string kNodes = "/api/v1/nodes";
const std::string kEvents = "/api/v1/events";
const std::string kTopologies = kTopologyPath;

/// Answers as a kubelet does. Its service is asked through a real socket.
class Kubelet final : public v1::PodResourcesLister::Service {
 public:
  explicit Kubelet(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix://" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status GetAllocatableResources(grpc::ServerContext*, const v1::AllocatableResourcesRequest*,
                                       v1::AllocatableResourcesResponse* response) override {
    std::lock_guard lock(mutex_);
    if (is_old_) return {grpc::StatusCode::UNIMPLEMENTED, "unknown method GetAllocatableResources"};
    v1::ContainerDevices& gpus = *response->add_devices();
    gpus.set_resource_name("vendor.com/gpu");
    gpus.add_device_ids("a");
    gpus.add_device_ids("b");
    gpus.mutable_topology()->add_nodes()->set_id(0);
    return grpc::Status::OK;
  }
  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*, v1::ListPodResourcesResponse*) override {
    return grpc::Status::OK;
  }
  void be_old() {
    std::lock_guard lock(mutex_);
    is_old_ = true;
  }

 private:
  std::mutex mutex_;
  bool is_old_ = false;
  std::unique_ptr<grpc::Server> server_;
};

class ReporterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.set_tokens({"secret"});
    server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  }
  void TearDown() override { end(); }
  void end() {
    if (reporter_) reporter_->stop();
    if (watch_) watch_->stop();
    reporter_.reset();
    watch_.reset();
  }
  void start_daemon() {
    rig_.configure("", "", "watch = unix://" + rig_.file("watch.sock"));
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }
  void start_agent(const std::string& pod_resources = "") {
    api::ApiServer settings;
    settings.url = server_.url();
    settings.ca.text = server_.ca_pem();
    settings.token = "secret";
    node_ = std::make_unique<Node>();
    watch_ = std::make_unique<WatchClient>(WatchClient::Options{.socket = rig_.file("watch.sock")}, *node_, *log_);
    Reporter::Options options;
    options.node_name = "n1";
    options.pod_resources = pod_resources;
    options.scheduler_resync = std::chrono::milliseconds(1000);
    if (has_control_) options.control_socket = rig_.control_socket();
    reporter_ = std::make_unique<Reporter>(options, settings, *node_, *watch_, *log_);
    reporter_->start();
    watch_->start();
  }
  void start() {
    start_daemon();
    start_agent();
    ASSERT_TRUE(published([](const json&) { return true; }));
  }
  json object() const { return server_.get(kTopologies, "n1").value_or(json()); }
  /// Waits until the object is so.
  bool published(const std::function<bool(const json&)>& is_so) const {
    return server_.wait_for([&] {
      const auto now = server_.get(kTopologies, "n1");
      return now && is_so(*now);
    });
  }
  static std::string attribute(const json& object, const std::string& name) {
    for (const json& attribute : object["attributes"]) {
      if (attribute["name"] == name) return attribute["value"];
    }
    return "";
  }
  static int available(const json& object, const std::string& name = "cpu") {
    int all = 0;
    for (const json& zone : object["zones"]) {
      for (const json& resource : zone["resources"]) {
        if (resource["name"] == name) all += std::stoi(resource["available"].get<std::string>());
      }
    }
    return all;
  }
  static json pod(const std::string& name, const std::string& cpu, const std::string& phase = "Pending") {
    const json amounts = {{"cpu", cpu}};
    return {{"metadata", {{"namespace", "default"}, {"name", name}, {"uid", "uid-" + name}}},
            {"spec",
             {{"nodeName", "n1"},
              {"containers", {{{"name", "main"}, {"resources", {{"requests", amounts}, {"limits", amounts}}}}}}}},
            {"status", {{"phase", phase}, {"qosClass", "Guaranteed"}}}};
  }
  /// Of node 0, as topoletd has it: "500 until UNTIL_MS by nrt"; empty if nothing is told.
  std::string told() {
    grpc::ClientContext context;
    control::v1::StatusResponse status;
    EXPECT_TRUE(rig_.control().Status(&context, {}, &status).ok());
    if (status.capacities().empty()) return "";
    const control::v1::Capacity& told = status.capacities(0);
    return fmt::format("{} until {} by {}", told.milli(), told.until_ms(), told.source());
  }
  /// Writes into zone 0 what a central master would; without `milli` it takes that back.
  void offer(const std::string& milli, const std::string& until) {
    json changed = object();
    json& attributes = changed["zones"][0]["attributes"];
    attributes.erase(std::remove_if(attributes.begin(), attributes.end(),
                                    [](const json& a) { return a["name"].get<std::string>().starts_with("offline-"); }),
                     attributes.end());
    if (!milli.empty()) {
      attributes.push_back({{"name", "offline-capacity-milli"}, {"value", milli}});
      attributes.push_back({{"name", "offline-capacity-until"}, {"value", until}});
    }
    server_.put(kTopologies, changed);
  }
  topolet::testing::DaemonRig rig_;
  bool has_control_ = false;
  StandIn server_;
  std::shared_ptr<Log> log_ = make_silent_log();
  std::unique_ptr<Node> node_;
  std::unique_ptr<WatchClient> watch_;
  std::unique_ptr<Reporter> reporter_;
};

TEST_F(ReporterTest, PublishesWhatFitsAndFollowsWhatIsBooked) {
  start();
  const int free = available(object());
  ASSERT_GE(free, 1);
  EXPECT_EQ(object()["metadata"]["ownerReferences"][0]["uid"], server_.get(kNodes, "n1")->at("metadata").at("uid"));
  ASSERT_TRUE(rig_.create("own", 1).ok());
  EXPECT_TRUE(published([&](const json& now) { return available(now) == free - 1; }));
}

TEST_F(ReporterTest, SubtractsPodsThatAreBoundAndCountsThemOnce) {
  start();
  const int free = available(object());
  server_.put(kPods, pod("own", "1"));
  ASSERT_TRUE(published([&](const json& now) { return attribute(now, "topolet.io/acked") == "uid-own"; }));
  EXPECT_EQ(available(object()), free - 1);
  EXPECT_EQ(attribute(object(), "nodeTopologyPodsFingerprint"), pods_fingerprint({}));
  const auto before = server_.history(kTopologies).size();
  ASSERT_TRUE(rig_.create("own", 1).ok());
  server_.put(kPods, pod("own", "1", "Running"));
  ASSERT_TRUE(published([&](const json& now) {
    return attribute(now, "nodeTopologyPodsFingerprint") == pods_fingerprint({{"default", "own"}});
  }));
  const auto history = server_.history(kTopologies);
  for (std::size_t i = before; i < history.size(); ++i) EXPECT_EQ(available(history[i].object), free - 1);
  server_.put(kPods, pod("elsewhere", "1"));
  server_.remove(kPods, "own", "default");
  EXPECT_TRUE(published([&](const json& now) { return attribute(now, "topolet.io/acked") == "uid-else"; }));
}

/// A machine that is busy may be late at some time, but nothing else is ever written within a second after another.
TEST_F(ReporterTest, PublishesAPodThatWasJustBoundAtOnce) {
  start();
  const auto is_quick = [&](const std::string& name) {
    json next = pod(name, "1");
    next["metadata"]["uid"] = name;
    const auto before = server_.history(kTopologies).back();
    server_.put(kPods, next);
    EXPECT_TRUE(
        published([&](const json& now) { return attribute(now, "topolet.io/acked").find(name) != std::string::npos; }));
    return server_.history(kTopologies).back().time - before.time < std::chrono::milliseconds(900);
  };
  bool was_quick = false;
  for (int i = 0; i < 10 && !was_quick; ++i) was_quick = is_quick(std::to_string(10000000 + i));
  EXPECT_TRUE(was_quick);
}

TEST_F(ReporterTest, TouchesAChangeOnceSoThatSchedulersLookAgain) {
  start();
  ASSERT_TRUE(published([](const json& now) { return !attribute(now, "topolet.io/touched").empty(); }));
  const auto history = server_.history(kTopologies);
  ASSERT_THAT(history, SizeIs(2));
  EXPECT_TRUE(tell_the_same(history[0].object, history[1].object));
  EXPECT_GE(history[1].time - history[0].time, std::chrono::milliseconds(2900));
}

TEST_F(ReporterTest, WritesNothingAnewThatIsThereAlready) {
  start();
  end();
  const auto versions = server_.history(kTopologies).size();
  start_agent();
  ASSERT_TRUE(server_.wait_for([&] { return server_.open_watches(kTopologies) == 1; }));
  ASSERT_TRUE(topolet::testing::DaemonRig::eventually([&] { return watch_->counts().snapshots == 1; }));
  server_.put(kPods, pod("own", "1"));
  ASSERT_TRUE(published([&](const json& now) { return attribute(now, "topolet.io/acked") == "uid-own"; }));
  EXPECT_EQ(attribute(server_.history(kTopologies).at(versions).object, "topolet.io/acked"), "uid-own");
}

TEST_F(ReporterTest, LeavesTheOldObjectWhileItDoesNotKnowForCertain) {
  start();
  const json before = object();
  ASSERT_TRUE(rig_.create("own", 1).ok());
  ASSERT_TRUE(published([&](const json& now) { return available(now) == available(before) - 1; }));
  const auto versions = server_.history(kTopologies).size();
  rig_.process().signal(SIGKILL);
  rig_.process().wait();
  server_.put(kPods, pod("other", "1"));
  // What would be written now would be wrong; that nothing is can only be waited for.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  for (std::size_t i = versions; i < server_.history(kTopologies).size(); ++i)
    EXPECT_EQ(attribute(server_.history(kTopologies)[i].object, "topolet.io/acked"), "") << "made without topoletd";
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(published([](const json& now) { return attribute(now, "topolet.io/acked") == "uid-othe"; }));
}

TEST_F(ReporterTest, GetsThroughConflictsLossesAndRefusals) {
  start();
  int number = 0;
  const auto gets_through = [&](const StandIn::Action& action, std::size_t times = 1) {
    server_.misbehave({.method = "PUT", .path_prefix = kTopologies, .times = times, .action = action});
    const std::string name = std::to_string(10000000 + ++number);
    json next = pod(name, "1");
    next["metadata"]["uid"] = name;
    server_.put(kPods, next);
    return published(
        [&](const json& now) { return attribute(now, "topolet.io/acked").find(name) != std::string::npos; });
  };
  EXPECT_TRUE(gets_through(StandIn::AnswerStatus{.code = 409}));
  EXPECT_TRUE(gets_through(StandIn::AnswerStatus{.code = 409}, 6));
  EXPECT_TRUE(gets_through(StandIn::AnswerStatus{.code = 403}));
  EXPECT_TRUE(gets_through(StandIn::AnswerStatus{.code = 429, .headers = {{"Retry-After", "1"}}}));
  EXPECT_TRUE(gets_through(StandIn::HalfBody{}));
  EXPECT_TRUE(gets_through(StandIn::LoseAnswer{}, 2));
  server_.restart();
  EXPECT_TRUE(gets_through(StandIn::AnswerStatus{.code = 500}));
  EXPECT_EQ(reporter_->counts().topology.other_writers, 0U) << "a write whose answer was lost is our own";
}

TEST_F(ReporterTest, MakesAnObjectAgainThatWasDeleted) {
  start();
  server_.remove(kTopologies, "n1");
  EXPECT_TRUE(published([](const json&) { return true; }));
}

TEST_F(ReporterTest, KeepsAttributesOfOthersAndNoticesASecondWriter) {
  start();
  json changed = object();
  changed["zones"][0]["attributes"].push_back({{"name", "offline-capacity-milli"}, {"value", "500"}});
  server_.put(kTopologies, changed);
  server_.put(kPods, pod("own", "1"));
  ASSERT_TRUE(published([](const json& now) { return attribute(now, "topolet.io/acked") == "uid-own"; }));
  EXPECT_EQ(attribute(object()["zones"][0], "offline-capacity-milli"), "500");
  EXPECT_EQ(reporter_->counts().topology.other_writers, 0U);

  changed = object();
  changed["zones"][0]["resources"] =
      json::array({{{"name", "cpu"}, {"capacity", "1"}, {"allocatable", "1"}, {"available", "1"}}});
  server_.put(kTopologies, changed);
  EXPECT_TRUE(topolet::testing::DaemonRig::eventually([&] { return reporter_->counts().topology.other_writers == 1; }));
  EXPECT_TRUE(published([](const json& now) { return now["zones"][0]["resources"].size() > 1; })) << "ours again";
}

TEST_F(ReporterTest, HandsDownWhatOthersSayOfTheCapacity) {
  using topolet::testing::DaemonRig;
  has_control_ = true;
  start();
  const auto effective = [](const json& now) { return attribute(now["zones"][0], "topolet.io/effective-cpu-milli"); };
  const std::chrono::seconds in_an_hour =
      std::chrono::duration_cast<std::chrono::seconds>(wall_time()) + std::chrono::hours(1);
  offer("500", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(in_an_hour.count())));
  const std::string expected = fmt::format("500 until {}000 by nrt", in_an_hour.count());
  EXPECT_TRUE(DaemonRig::eventually([&] { return told() == expected; })) << told();
  ASSERT_TRUE(published([&](const json& now) { return effective(now) == "500"; }));
  EXPECT_EQ(attribute(object()["zones"][0], "offline-capacity-milli"), "500") << "it is somebody else's";
  offer("", "");
  EXPECT_TRUE(DaemonRig::eventually([&] { return told().empty(); })) << told();
  EXPECT_TRUE(published([&](const json& now) { return effective(now).empty(); }));
  offer("500", "2026-01-01T00:00:00Z");
  server_.put(kPods, pod("own", "1"));
  ASSERT_TRUE(published([](const json& now) { return attribute(now, "topolet.io/acked") == "uid-own"; }));
  EXPECT_EQ(told(), "") << "it was over before it came";
  EXPECT_EQ(rig_.stop(), 0);
  EXPECT_THAT(rig_.query("SELECT reason FROM decided WHERE event = 'capacity' ORDER BY decision"),
              ElementsAre(HasSubstr("told by nrt"), HasSubstr("was cleared by nrt")));
}

TEST_F(ReporterTest, LeavesTheCapacityUnreadWithoutAControlSocket) {
  start();
  offer("500", "2090-01-01T00:00:00Z");
  server_.put(kPods, pod("own", "1"));
  ASSERT_TRUE(published([](const json& now) { return attribute(now, "topolet.io/acked") == "uid-own"; }));
  EXPECT_EQ(told(), "");
  EXPECT_FALSE(reporter_->counts().capacity.has_value());
}

TEST_F(ReporterTest, NoticesASecondWriterWhileItAsksWhatFits) {
  start();
  ASSERT_TRUE(published([](const json& now) { return !attribute(now, "topolet.io/touched").empty(); }));
  rig_.process().signal(SIGSTOP);
  json changed = object();
  changed["attributes"].push_back({{"name", "foreign"}, {"value", "1"}});
  server_.put(kTopologies, changed);
  // The agent looks whether that changes anything, for which topoletd does not answer yet.
  std::this_thread::sleep_for(std::chrono::milliseconds(1600));
  changed["zones"][0]["resources"] =
      json::array({{{"name", "cpu"}, {"capacity", "1"}, {"allocatable", "1"}, {"available", "1"}}});
  server_.put(kTopologies, changed);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  rig_.process().signal(SIGCONT);
  EXPECT_TRUE(published([](const json& now) { return now["zones"][0]["resources"].size() > 1; })) << "ours again";
  const auto history = server_.history(kTopologies);
  EXPECT_GE(history.back().time - history[history.size() - 2].time, std::chrono::milliseconds(8500)) << "in no hurry";
}

TEST_F(ReporterTest, WakesSchedulersWhenThereIsRoomAgainAndPodsWait) {
  start();
  json waiting = pod("waiting", "1");
  waiting["spec"]["nodeName"] = "";
  waiting["status"]["conditions"] = {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  server_.put(kPods, pod("own", "1"));
  ASSERT_TRUE(published([](const json& now) { return attribute(now, "topolet.io/acked") == "uid-own"; }));
  const auto annotated = [&] { return server_.get(kNodes, "n1")->at("metadata").contains("annotations"); };
  EXPECT_FALSE(annotated());
  server_.put(kPods, waiting);
  server_.remove(kPods, "own", "default");
  EXPECT_TRUE(server_.wait_for(annotated));
}

TEST_F(ReporterTest, PublishesDevicesOfTheKubelet) {
  const std::string socket = rig_.file("kubelet.sock");
  auto kubelet = std::make_unique<Kubelet>(socket);
  start_daemon();
  start_agent(socket);
  ASSERT_TRUE(published([](const json& now) { return available(now, "vendor.com/gpu") == 2; }));
  json with_gpu = pod("gpu", "1");
  with_gpu["spec"]["containers"][0]["resources"]["requests"]["vendor.com/gpu"] = "1";
  server_.put(kPods, with_gpu);
  EXPECT_TRUE(published([](const json& now) { return available(now, "vendor.com/gpu") == 1; }));
  EXPECT_EQ(available(server_.history(kTopologies).front().object, "vendor.com/gpu"), 2) << "not before it was known";
}

TEST_F(ReporterTest, PublishesWithoutDevicesWhereTheKubeletTellsNone) {
  start_daemon();
  start_agent(rig_.file("no-kubelet.sock"));
  EXPECT_TRUE(published([](const json&) { return true; }));
  end();
  server_.remove(kTopologies, "n1");
  Kubelet old(rig_.file("old.sock"));
  old.be_old();
  start_agent(rig_.file("old.sock"));
  EXPECT_TRUE(published([](const json& now) { return available(now, "vendor.com/gpu") == 0; }));
}

TEST_F(ReporterTest, TellsThePodOfADenialWithItsReason) {
  start();
  server_.put(kPods, pod("huge", "1000"));
  ASSERT_TRUE(published([](const json& now) { return attribute(now, "topolet.io/acked") == "uid-huge"; }));
  EXPECT_FALSE(rig_.create("huge", 1000).ok());
  ASSERT_TRUE(server_.wait_for([&] { return !server_.history(kEvents).empty(); }));
  const json event = server_.history(kEvents).front().object;
  EXPECT_EQ(event["reason"], "TopologyDenied");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["involvedObject"]["uid"], "uid-huge");
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("container main: "));
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("requested=1000"));
}

class PodEventsTest : public ::testing::Test {
 protected:
  PodEventsTest() {
    server_.set_tokens({"secret"});
    settings_.url = server_.url();
    settings_.ca.text = server_.ca_pem();
    settings_.token = "secret";
    client_ = std::make_unique<api::ApiClient>(loop_, settings_);
  }
  ~PodEventsTest() override { loop_.stop(); }
  void start(PodEvents::Options options) {
    options.node_name = "n1";
    events_ = std::make_unique<PodEvents>(
        options, *client_, [this] { return &pods_; }, *log_);
    loop_.start();
  }
  void take(const std::string& event, const std::string& pod, const std::string& reason, const std::string& nodes = "0",
            bool is_remote = false, int times = 1, const std::string& reason_code = "best-score") {
    watch::v1::Event message;
    message.set_event(event);
    message.set_reason_code(reason_code);
    message.set_pod_name(pod);
    message.set_pod_namespace("default");
    message.mutable_key()->set_pod_uid("uid-" + pod);
    message.mutable_key()->set_name("main");
    message.set_reason(reason);
    message.set_nodes(nodes);
    loop_.post([this, message, is_remote, times] {
      for (int i = 0; i < times; ++i) events_->take(message, is_remote);
    });
  }
  /// Waits for so many versions of events.
  std::vector<topolet::testing::Version> written(std::size_t count) {
    EXPECT_TRUE(server_.wait_for([&] { return server_.history(kEvents).size() >= count; }));
    return server_.history(kEvents);
  }
  PodEvents::Counts counts() {
    std::promise<PodEvents::Counts> counts;
    loop_.post([&] { counts.set_value(events_->counts()); });
    return counts.get_future().get();
  }

  StandIn server_;
  api::ApiServer settings_;
  std::shared_ptr<Log> log_ = make_silent_log();
  api::HttpLoop loop_;
  std::unique_ptr<api::ApiClient> client_;
  BoundPods pods_;
  std::unique_ptr<PodEvents> events_;
};

TEST_F(PodEventsTest, CountTheSameInOne) {
  start({.update_period = std::chrono::milliseconds(200)});
  take("denied", "web", "too few", "0", false, 4);
  const auto versions = written(2);
  EXPECT_EQ(versions[0].object["count"], 1);
  EXPECT_EQ(versions[1].object["count"], 4);
  EXPECT_EQ(versions[0].object["metadata"]["name"], versions[1].object["metadata"]["name"]);
  EXPECT_EQ(versions[1].object["firstTimestamp"], versions[0].object["firstTimestamp"]);
  take("denied", "web", "still too few");
  EXPECT_EQ(written(3).back().object["count"], 1);
}

TEST_F(PodEventsTest, AreOfMovesAndOfWideOrRemoteOrUnwantedPlacesOnly) {
  start({});
  take("placed", "narrow", "fits");
  take("drift", "web", "repaired");
  take("placed", "wide", "on two nodes", "0-1");
  EXPECT_EQ(written(1).back().object["reason"], "Placed");
  take("placed", "remote", "its GPU is elsewhere", "0", true);
  EXPECT_EQ(written(2).back().object["involvedObject"]["name"], "remote");
  take("re-placed", "web", "it makes room");
  EXPECT_EQ(written(3).back().object["reason"], "Moved");
  take("placed", "missed", "outside the zone", "0", false, 1, "zone-missed");
  EXPECT_EQ(written(4).back().object["reason"], "Placed");
}

TEST_F(PodEventsTest, OfAStaticPodAreOnItsMirror) {
  json mirror;
  mirror["metadata"]["name"] = "static";
  mirror["metadata"]["uid"] = "uid-of-the-mirror";
  mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "uid-static";
  pods_.apply("ADDED", mirror);
  start({});
  take("denied", "static", "too few");
  EXPECT_EQ(written(1)[0].object["involvedObject"]["uid"], "uid-of-the-mirror");
}

TEST_F(PodEventsTest, AreLimited) {
  start({.most_of_pod = 3, .most_at_once = 5, .period = std::chrono::hours(1)});
  for (int i = 0; i < 10; ++i) take("denied", "loud", std::to_string(i));
  for (int i = 0; i < 10; ++i) take("denied", "pod" + std::to_string(i), "too few");
  const auto versions = written(5);
  EXPECT_EQ(std::count_if(versions.begin(), versions.end(),
                          [](const auto& version) { return version.object["involvedObject"]["name"] == "loud"; }),
            3);
  EXPECT_EQ(counts().dropped, 15U);
  EXPECT_EQ(server_.history(kEvents).size(), 5U);
}

TEST_F(PodEventsTest, OfOneThatHasExpiredIsANewOne) {
  start({.update_period = std::chrono::milliseconds(100)});
  take("denied", "web", "too few");
  const std::string name = written(1)[0].object["metadata"]["name"];
  server_.remove(kEvents, name, "default");
  take("denied", "web", "too few");
  EXPECT_TRUE(server_.wait_for([&] {
    const auto patches = server_.requests("PATCH");
    return !patches.empty() && patches.back().answered == 404;
  }));
  EXPECT_TRUE(topolet::testing::DaemonRig::eventually([&] { return counts().failed == 1; }));
  take("denied", "web", "too few");
  EXPECT_NE(written(3).back().object["metadata"]["name"], name);
}

}  // namespace
}  // namespace topolet::agent
