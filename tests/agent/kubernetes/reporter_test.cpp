// Everything that the agent writes to the API server: a real topoletd, and a server that can be made to misbehave.
#include "cluster/agent/kubernetes/reporter.hpp"

#include <fmt/chrono.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <mutex>

#include "cluster/agent/kubernetes/zones.hpp"
#include "tests/agent/kubernetes/paths.hpp"
#include "tests/cluster_api/apiserver.hpp"
#include "tests/cluster_api/loop_time.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using topolet::testing::eventually;
using StandIn = topolet::testing::ApiServer;

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
  void start_daemon(const std::string& placement = "", const std::string& daemon = "node-name = n1") {
    rig_.configure("", placement, "watch = unix://" + rig_.file("watch.sock") + "\n" + daemon);
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }
  void start_agent(const std::string& pod_resources = "") {
    api::ApiServer settings;
    settings.url = server_.url();
    settings.ca.text = server_.ca_pem();
    settings.token = "secret";
    node_ = std::make_unique<Node>();
    watch_ = std::make_unique<WatchClient>(
        WatchClient::Options{.socket = rig_.file("watch.sock"), .longest_pause = std::chrono::milliseconds(10)}, *node_,
        *log_);
    Clock clock = clock_.clock();
    clock.wall = Clock().wall;  // topoletd's, too
    Reporter::Options options;
    options.node_name = "n1";
    options.pod_resources = pod_resources;
    options.scheduler_resync = std::chrono::milliseconds(1000);
    options.scheduler_names = {"topolet"};
    options.clock = clock;
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
  void advance(std::chrono::milliseconds time) { topolet::testing::advance(reporter_->loop(), clock_, time); }
  bool pass_time_until(const std::function<bool()>& condition) {
    return topolet::testing::pass_time_until(reporter_->loop(), clock_, condition);
  }
  /// Lets time pass until the object is so.
  bool published(const std::function<bool(const json&)>& is_so) {
    return pass_time_until([&] {
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
  /// Returns the capacity of node 0 as topoletd has it: "500 until UNTIL_MS by nrt"; empty if none is set.
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
  topolet::testing::ManualClock clock_;
  StandIn server_{StandIn::Options{.clock = clock_.clock()}};
  std::shared_ptr<Log> log_ = make_silent_log();
  std::unique_ptr<Node> node_;
  std::unique_ptr<WatchClient> watch_;
  std::unique_ptr<Reporter> reporter_;
};

TEST_F(ReporterTest, IsNotReadyWhereItMayNotPublish) {
  const auto deny = [](std::size_t times) {
    return StandIn::Misbehaviour{
        .method = "POST",
        .path_prefix = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        .times = times,
        .action = StandIn::AnswerText{
            .body = R"({"status":{"allowed":false}})", .content_type = "application/json", .code = 201}};
  };
  server_.misbehave(deny(4));
  start();
  ASSERT_TRUE(pass_time_until([&] { return node_->not_ready().empty(); })) << "the rights are granted by now";
  server_.misbehave(deny(1000));
  advance(std::chrono::minutes(11));
  ASSERT_TRUE(pass_time_until([&] { return !node_->not_ready().empty(); }));
  EXPECT_THAT(node_->not_ready(), HasSubstr("node n1: topolet-agent may not list noderesourcetopologies.topology"));
  EXPECT_EQ(node_->illnesses()[0].code, "may-not-publish");
  EXPECT_EQ(node_->illnesses()[0].severity, Severity::kWarning) << "pods start";
}

TEST_F(ReporterTest, TellsAnApiServerThatIsAwayFromOneThatRefuses) {
  start();
  ASSERT_TRUE(pass_time_until([&] { return node_->illnesses().empty(); }));
  server_.misbehave(
      {.method = "PUT", .path_prefix = kTopologies, .times = 4, .action = StandIn::AnswerStatus{.code = 503}});
  ASSERT_TRUE(rig_.create("own", 1).ok());
  const auto is_ill = [&](const std::string& code) {
    const std::vector<Illness> found = node_->illnesses();
    return !found.empty() && found[0].code == code;
  };
  EXPECT_TRUE(pass_time_until([&] { return is_ill("not-published"); }));
  EXPECT_EQ(node_->not_ready(), "");
  EXPECT_TRUE(pass_time_until([&] { return node_->illnesses().empty(); }));
  server_.misbehave(
      {.method = "PUT", .path_prefix = kTopologies, .times = 4, .action = StandIn::AnswerStatus{.code = 403}});
  ASSERT_TRUE(rig_.create("other", 1).ok());
  EXPECT_TRUE(pass_time_until([&] { return is_ill("may-not-publish"); }));
  EXPECT_THAT(node_->not_ready(), HasSubstr("the API server refuses the NodeResourceTopology"));
  EXPECT_TRUE(pass_time_until([&] { return node_->not_ready().empty(); }));
}

TEST_F(ReporterTest, TellsAsIllWhatCannotBeMeantSo) {
  start_daemon("annotations = cpus", "node-name = n9");
  start_agent();
  ASSERT_TRUE(published([](const json&) { return true; }));
  std::vector<Illness> found;
  ASSERT_TRUE(pass_time_until([&] {
    found = node_->illnesses();
    return found.size() == 2 && found[0].code == "node-name";
  }));
  EXPECT_THAT(found[0].sentence, HasSubstr("set daemon.node-name = n1 in topolet.conf"));
  EXPECT_EQ(found[1].code, "zone-annotation");
  EXPECT_GT(found[1].since.count(), 0);
  EXPECT_EQ(node_->not_ready(), "") << "pods start, and the node is published";
}

TEST_F(ReporterTest, TellsAsIllWhyNothingIsPublished) {
  server_.remove(kNodes, "n1");
  server_.misbehave(
      {.method = "GET", .path_prefix = kTopologies, .times = 60, .action = StandIn::AnswerStatus{.code = 404}});
  start_daemon();
  start_agent();
  const auto says = [&](const std::string& text, Severity severity) {
    const std::vector<Illness> found = node_->illnesses();
    return std::any_of(found.begin(), found.end(), [&](const Illness& one) {
      return one.code == "not-published" && one.severity == severity && one.sentence.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(pass_time_until([&] { return says("crd.yaml", Severity::kNotice); }));
  advance(std::chrono::minutes(1));
  EXPECT_TRUE(pass_time_until([&] { return says("crd.yaml", Severity::kWarning); })) << "it is no start any more";
  EXPECT_TRUE(pass_time_until([&] { return says("without a Node of this name", Severity::kWarning); }));
  server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  EXPECT_TRUE(pass_time_until([&] { return node_->illnesses().empty(); })) << node_->illnesses()[0].sentence;
}

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

TEST_F(ReporterTest, WritesNothingAnewThatIsThereAlready) {
  start();
  end();
  const auto versions = server_.history(kTopologies).size();
  start_agent();
  ASSERT_TRUE(server_.wait_for([&] { return server_.open_watches(kTopologies) == 1; }));
  ASSERT_TRUE(eventually([&] { return watch_->counts().snapshots == 1; }));
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
  ASSERT_TRUE(eventually([&] { return !node_->summary().connected; }));
  ASSERT_TRUE(pass_time_until([&] { return reporter_->counts().bound_pods == 1; }));
  advance(std::chrono::minutes(1));
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
  EXPECT_TRUE(pass_time_until([&] { return reporter_->counts().topology.other_writers == 1; }));
  EXPECT_TRUE(published([](const json& now) { return now["zones"][0]["resources"].size() > 1; })) << "ours again";
}

TEST_F(ReporterTest, HandsDownWhatOthersSayOfTheCapacity) {
  has_control_ = true;
  start();
  const auto effective = [](const json& now) { return attribute(now["zones"][0], "topolet.io/effective-cpu-milli"); };
  const std::chrono::seconds in_an_hour =
      std::chrono::duration_cast<std::chrono::seconds>(Clock().wall()) + std::chrono::hours(1);
  offer("500", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(in_an_hour.count())));
  const std::string expected = fmt::format("500 until {}000 by nrt", in_an_hour.count());
  EXPECT_TRUE(pass_time_until([&] { return told() == expected; })) << told();
  ASSERT_TRUE(published([&](const json& now) { return effective(now) == "500"; }));
  EXPECT_EQ(attribute(object()["zones"][0], "offline-capacity-milli"), "500") << "it is somebody else's";
  offer("", "");
  EXPECT_TRUE(pass_time_until([&] { return told().empty(); })) << told();
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

TEST_F(ReporterTest, WakesSchedulersWhenThereIsRoomAgainAndPodsWait) {
  start();
  json waiting = pod("waiting", "1");
  waiting["spec"]["nodeName"] = "";
  waiting["spec"]["schedulerName"] = "topolet";
  server_.put(kPods, pod("own", "1"));
  ASSERT_TRUE(published([](const json& now) { return attribute(now, "topolet.io/acked") == "uid-own"; }));
  const auto annotated = [&] { return server_.get(kNodes, "n1")->at("metadata").contains("annotations"); };
  EXPECT_FALSE(annotated());
  server_.put(kPods, waiting);
  server_.remove(kPods, "own", "default");
  EXPECT_TRUE(pass_time_until(annotated));
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
  ASSERT_TRUE(pass_time_until([&] { return !server_.history(kEvents).empty(); }));
  const json event = server_.history(kEvents).front().object;
  EXPECT_EQ(event["reason"], "TopologyDenied");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["involvedObject"]["uid"], "uid-huge");
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("container main: "));
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("requested=1000"));
}

}  // namespace
}  // namespace topolet::agent
