// topolet-extender as a process of its own, between a scheduler and an API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <future>
#include <list>
#include <regex>
#include <sstream>

#include "tests/cluster_api/apiserver.hpp"
#include "tests/extender/support.hpp"
#include "tests/http/http_client.hpp"
#include "tests/http/tls_client.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::extender {
namespace {

using ::testing::AllOf;
using testing::ApiServer;
using testing::Ca;
using testing::Certificate;
using testing::eventually;
using ::testing::HasSubstr;
using testing::http_get;
using testing::HttpConnection;
using testing::post_tls;
using testing::Process;
using ::testing::StartsWith;
using testing::TlsReply;

const std::string kPods = "/api/v1/pods";
const std::string kTopologies = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";

/// One process, and what it says.
class Replica {
 public:
  Replica(const TempDir& folder, const std::string& name, const std::vector<std::string>& more)
      : log_file_(folder.file(name + ".log")) {
    std::vector<std::string> command = {TOPOLET_EXTENDER,
                                        "--kubernetes=" + folder.file("kubeconfig"),
                                        "--metrics-address=127.0.0.1:0",
                                        "--debug-address=127.0.0.1:0",
                                        "--certificate=" + folder.file("tls.crt"),
                                        "--key=" + folder.file("tls.key"),
                                        "--client-ca=" + folder.file("ca.crt"),
                                        "--identity=" + name};
    command.insert(command.end(), more.begin(), more.end());
    process_ = std::make_unique<Process>(command, log_file_);
  }
  std::string log() const {
    std::ostringstream text;
    text << std::ifstream(log_file_).rdbuf();
    return text.str();
  }
  std::string address(const std::string& what) const {
    std::smatch match;
    const std::string text = log();
    return std::regex_search(text, match, std::regex(what + " https?://([0-9.:]+)/")) ? match[1].str() : "";
  }
  std::string calls() const { return address("schedulers may call"); }
  bool is_serving() const { return !address("what is promised:").empty(); }
  bool is_ready() const {
    return is_serving() && http_get(address("metrics on"), "/readyz").starts_with("HTTP/1.1 200");
  }
  std::string metrics() const { return http_get(address("metrics on"), "/metrics"); }
  json zones() const {
    const std::string answer = http_get(address("what is promised:"), "/debug/zones");
    return json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, false);
  }
  bool leads() const { return is_serving() && zones()["leads"] == true; }
  Process& process() { return *process_; }

 private:
  const std::string log_file_;
  std::unique_ptr<Process> process_;
};

class ExtenderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Certificate own = ca_.replica_certificate(
        {.common_name = "topolet-extender", .alternative_names = "DNS:topolet-extender.test,IP:127.0.0.1"});
    folder_.write("tls.crt", own.certificate_pem);
    folder_.write("tls.key", own.key_pem);
    folder_.write("ca.crt", ca_.pem());
    folder_.write("api-ca.crt", server_.ca_pem());
    folder_.write("kubeconfig", fmt::format(R"(apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{}", certificate-authority: {}}}}}]
users: [{{name: u, user: {{token: secret}}}}]
)",
                                            server_.url(), folder_.file("api-ca.crt")));
  }
  void start(const std::vector<std::string>& more = {"--lease=none", "--listen=127.0.0.1:0"}) {
    replica_ = std::make_unique<Replica>(folder_, "one", more);
    ASSERT_TRUE(eventually([&] { return replica_->is_ready(); })) << replica_->log();
  }
  std::string make_pod(const std::string& name, const std::vector<ContainerSpec>& containers = {{}},
                       const json& annotations = json::object()) {
    return server_.put(kPods, pod_object(name, containers, annotations))["metadata"]["uid"];
  }
  json pod(const std::string& name) { return *server_.get(kPods, name, "default"); }
  std::string zone_of(const std::string& name) {
    const json annotation = json::parse(pod(name)["metadata"]["annotations"].value("topolet.io/zone", "null"));
    return annotation.is_null() ? "none" : annotation["node"].get<std::string>() + ' ' + annotation["zones"].dump();
  }
  TlsReply call(const std::string& path, const std::string& body, Replica* replica = nullptr) {
    return post_tls("https://" + (replica != nullptr ? replica : replica_.get())->calls() + path, ca_,
                    ca_.client_certificate("system:kube-scheduler"), body);
  }
  json filter(const std::string& pod_name, const std::vector<std::string>& nodes, Replica* replica = nullptr) {
    const json args = {{"Pod", pod(pod_name)}, {"Nodes", nullptr}, {"NodeNames", nodes}};
    return json::parse(call("/filter", args.dump(), replica).body, nullptr, false);
  }
  std::string bind(const std::string& pod_name, const std::string& node, Replica* replica = nullptr) {
    const json args = {{"PodName", pod_name},
                       {"PodNamespace", "default"},
                       {"PodUID", pod(pod_name)["metadata"]["uid"]},
                       {"Node", node}};
    const TlsReply reply = call("/bind", args.dump(), replica);
    if (reply.status != 200) return fmt::format("status {}: {}", reply.status, reply.body);
    return json::parse(reply.body, nullptr, false).value("Error", "no Error in " + reply.body);
  }
  void publish(const NodeSpec& node) {
    const std::size_t before = server_.history(kTopologies).size();
    server_.put(kTopologies, topology_object(node));
    ASSERT_EQ(server_.history(kTopologies).size(), before + 1);
  }

  TempDir folder_;
  Ca ca_;
  ApiServer server_{ApiServer::Options{.tokens = {"secret"}}};
  std::unique_ptr<Replica> replica_;
};

TEST_F(ExtenderTest, BindsPodsToTheZonesThatTheyArePromised) {
  publish({.name = "small", .zones = {{10}, {10}}, .policy = "single-numa-node"});
  publish({.name = "large", .zones = {{20}, {20}}, .policy = "single-numa-node"});
  start();
  for (const char* name : {"a", "b", "c"}) make_pod(name, {{.cpu = "20"}});
  const json passing = filter("a", {"small", "large"});
  EXPECT_EQ(passing["NodeNames"], json::array({"large"}));
  EXPECT_EQ(passing["FailedAndUnresolvableNodes"]["small"],
            "topolet: no zone has 20 free CPUs, the best has 10: never, as the largest has 10");
  const json args = {{"Pod", pod("a")}, {"NodeNames", {"large"}}};
  EXPECT_EQ(json::parse(call("/prioritize", args.dump()).body), json::array({{{"Host", "large"}, {"Score", 10}}}));
  EXPECT_EQ(bind("a", "large"), "");
  EXPECT_EQ(zone_of("a"), "large [0]");
  EXPECT_EQ(bind("b", "large"), "");
  EXPECT_EQ(zone_of("b"), "large [1]");
  EXPECT_EQ(filter("c", {"large"})["NodeNames"], json::array());
  EXPECT_EQ(bind("c", "large"), "topolet: large: no zone has 20 free CPUs, the best has 0: not now");
  EXPECT_EQ(pod("c")["spec"].value("nodeName", ""), "");
  EXPECT_THAT(http_get(replica_->address("what is promised:"), "/debug/zones", "evil.example"),
              StartsWith("HTTP/1.1 403"));
  const json promises = replica_->zones()["promises"];
  ASSERT_EQ(promises.size(), 2U);
  EXPECT_EQ(promises[0]["zones"]["0"]["cpu-milli"], 20000);
  EXPECT_THAT(replica_->metrics(), AllOf(HasSubstr("\ntopolet_extender_promises 2\n"),
                                         HasSubstr("topolet_extender_calls_total{call=\"bind\",outcome=\"ok\"} 2")));
  // Its node counts both, and one ends.
  const std::string uid = pod("b")["metadata"]["uid"];
  publish({.name = "large",
           .zones = {{20}, {.available = 0, .allocatable = 20}},
           .policy = "single-numa-node",
           .acknowledged = pod("a")["metadata"]["uid"].get<std::string>().substr(0, 8) + "," + uid.substr(0, 8)});
  EXPECT_TRUE(eventually([&] { return replica_->zones()["promises"].empty(); }));
  EXPECT_EQ(bind("c", "large"), "");
  EXPECT_EQ(zone_of("c"), "large [0]");
}

TEST_F(ExtenderTest, IsNotReadyWithoutItsRightsAndStaysReadyWhereNobodyTellsThem) {
  // As many as it asks for at first.
  server_.misbehave({.method = "POST",
                     .path_prefix = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                     .times = 7,
                     .action = ApiServer::AnswerText{
                         .body = R"({"status":{"allowed":false}})", .content_type = "application/json", .code = 201}});
  replica_ =
      std::make_unique<Replica>(folder_, "one", std::vector<std::string>{"--lease=none", "--listen=127.0.0.1:0"});
  const auto says = [&] { return http_get(replica_->address("metrics on"), "/readyz"); };
  ASSERT_TRUE(eventually([&] {
    return replica_->is_serving() && says().find("may not list noderesourcetopologies") != std::string::npos;
  })) << replica_->log();
  EXPECT_THAT(says(), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("list pods, get pods, create pods/binding"),
                            HasSubstr("deploy/kubernetes/extender.yaml")));
  EXPECT_TRUE(eventually([&] { return replica_->is_ready(); })) << "they are granted by now";
  server_.stop();
  EXPECT_TRUE(replica_->is_ready()) << "a server that is away takes nothing back";
}

TEST_F(ExtenderTest, IsReadyWithoutRightsThatAreUsefulOnlyAndTellsOfThem) {
  for (const char* resource : {R"("nodes")", R"("poddisruptionbudgets")"}) {
    server_.misbehave({.method = "POST",
                       .path_prefix = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                       .times = 1000,
                       .action = ApiServer::AnswerText{.body = R"({"status":{"allowed":false}})",
                                                       .content_type = "application/json",
                                                       .code = 201},
                       .body_part = resource});
  }
  start();
  EXPECT_TRUE(eventually([&] {
    return replica_->metrics().find("topolet_extender_missing_rights{right=\"useful\"} 2") != std::string::npos;
  })) << replica_->metrics();
  EXPECT_THAT(replica_->metrics(), HasSubstr("topolet_extender_missing_rights{right=\"needed\"} 0"));
  EXPECT_THAT(replica_->log(),
              AllOf(HasSubstr("may not patch nodes: "), HasSubstr("may not list poddisruptionbudgets.policy: ")));
  EXPECT_TRUE(replica_->is_ready());
}

TEST_F(ExtenderTest, EvictsAsManyOfOneZoneAsItTakesAndKeepsItForThePod) {
  std::string acknowledged;
  json offered = json::array();
  std::map<std::string, int> zones;
  for (int i = 0; i < 18; ++i) {
    const std::string name = fmt::format("low-{}", i);
    json low =
        pod_object(name, {{.cpu = "1"}},
                   {{"topolet.io/zone",
                     fmt::format(R"({{"v":1,"node":"n1","zones":[{}],"containers":{{"main":[{}]}}}})", i % 2, i % 2)}});
    low["spec"]["nodeName"] = "n1";
    low["status"]["phase"] = "Running";
    const std::string uid = server_.put(kPods, low)["metadata"]["uid"];
    zones[uid] = i % 2;
    acknowledged += (i > 0 ? "," : "") + uid.substr(0, 8);
    if (i < 6) offered.push_back({{"UID", uid}});
  }
  const ZoneSpec one{.available = 1, .allocatable = 10};
  publish({.zones = {one, one}, .policy = "single-numa-node", .acknowledged = acknowledged});
  start();
  json high = pod_object("high", {{.cpu = "8"}});
  high["spec"]["priority"] = 1000;
  high = server_.put(kPods, high);
  const json args = {{"Pod", high},
                     {"NodeNameToVictims", nullptr},
                     {"NodeNameToMetaVictims", {{"n1", {{"Pods", offered}, {"NumPDBViolations", 0}}}}}};
  const json answer = json::parse(call("/preempt", args.dump()).body, nullptr, false);
  const json& victims = answer["NodeNameToMetaVictims"]["n1"]["Pods"];
  ASSERT_EQ(victims.size(), 7U) << answer;
  for (const json& victim : victims) EXPECT_EQ(zones.at(victim["UID"]), zones.at(victims[0]["UID"]));
  EXPECT_EQ(answer["NodeNameToMetaVictims"]["n1"]["NumPDBViolations"], 0);
  EXPECT_EQ(replica_->zones()["kept"][0]["pod"], "default/high");
  EXPECT_THAT(replica_->metrics(), HasSubstr("\ntopolet_extender_kept 1\n"));
  // While they end, no other node is looked for.
  EXPECT_TRUE(filter("high", {"n1"})["FailedNodes"].contains("n1"));
  // With whole pods, and with what nobody can serve.
  const json whole = {{"Pod", high},
                      {"NodeNameToVictims", {{"n1", {{"Pods", {pod("low-0")}}, {"NumPDBViolations", 0}}}}}};
  EXPECT_EQ(json::parse(call("/preempt", whole.dump()).body)["NodeNameToMetaVictims"]["n1"]["Pods"].size(), 7U);
  EXPECT_EQ(call("/preempt", "{}").status, 400);
  make_pod("huge", {{.cpu = "11"}});
  json huge = args;
  huge["Pod"] = pod("huge");
  huge["Pod"]["spec"]["priority"] = 1000;
  EXPECT_EQ(json::parse(call("/preempt", huge.dump()).body)["NodeNameToMetaVictims"], json::object());
}

TEST_F(ExtenderTest, APodThatWantsNothingOfZonesIsBoundAsAnyOther) {
  start();
  make_pod("shared", {{.cpu = "500m"}});
  EXPECT_EQ(filter("shared", {"n1", "n2"})["NodeNames"], json::array({"n1", "n2"}));
  EXPECT_EQ(bind("shared", "n2"), "");
  EXPECT_EQ(pod("shared")["spec"]["nodeName"], "n2");
  EXPECT_EQ(zone_of("shared"), "none");
  EXPECT_EQ(bind("shared", "n2"), "") << "already assigned to the same node";
  EXPECT_THAT(bind("shared", "n1"), HasSubstr("the pod is bound to n2 already"));
}

TEST_F(ExtenderTest, ManyAtOnceForOnePlace) {
  publish({.zones = {{4}}});
  start();
  for (int i = 0; i < 16; ++i) make_pod(fmt::format("p{}", i));
  std::vector<std::future<std::string>> binds;
  for (int i = 0; i < 16; ++i)
    binds.push_back(std::async(std::launch::async, [&, i] { return bind(fmt::format("p{}", i), "n1"); }));
  int bound = 0;
  for (auto& each : binds) bound += each.get().empty() ? 1 : 0;
  EXPECT_EQ(bound, 1);
}

TEST_F(ExtenderTest, ABindingThatFailsGivesItsZoneBackAndOneInDoubtDoesNot) {
  publish({.zones = {{4}}});
  start();
  for (const char* name : {"a", "b", "c"}) make_pod(name);
  const auto misbehave = [&](ApiServer::Action action, std::size_t times = 1) {
    server_.misbehave({.method = "POST",
                       .path_prefix = "/api/v1/namespaces/default/pods",
                       .times = times,
                       .action = std::move(action)});
  };
  misbehave(ApiServer::AnswerStatus{.code = 403, .message = "no, by policy"});
  EXPECT_THAT(bind("a", "n1"), HasSubstr("no, by policy"));
  EXPECT_TRUE(replica_->zones()["promises"].empty());
  // The server does it, and its answer is lost.
  misbehave(ApiServer::LoseAnswer{});
  EXPECT_EQ(bind("a", "n1"), "");
  EXPECT_EQ(zone_of("a"), "n1 [0]");
  ASSERT_TRUE(server_.remove(kPods, "a", "default"));
  publish({.zones = {{4}}, .acknowledged = replica_->zones()["promises"][0]["uid"].get<std::string>().substr(0, 8)});
  EXPECT_TRUE(eventually([&] { return replica_->zones()["promises"].empty(); }));
  // Nobody knows whether the server will do it.
  misbehave(ApiServer::AnswerStatus{.code = 500, .message = "something"});
  EXPECT_THAT(bind("b", "n1"), HasSubstr("something"));
  EXPECT_EQ(replica_->zones()["promises"][0]["state"], "in doubt");
  EXPECT_THAT(bind("c", "n1"), HasSubstr("its zones have no 4 free CPUs, but 0"));
  EXPECT_EQ(bind("b", "n1"), "") << "it is its own promise";
}

TEST_F(ExtenderTest, GoesOnFromWhatItKnowsWhileTheApiServerIsGone) {
  publish({.zones = {{4}}});
  start();
  make_pod("a");
  const json args = {{"Pod", pod("a")}, {"NodeNames", {"n1"}}};
  const json binding = {
      {"PodName", "a"}, {"PodNamespace", "default"}, {"PodUID", pod("a")["metadata"]["uid"]}, {"Node", "n1"}};
  EXPECT_EQ(filter("a", {"n1"})["NodeNames"], json::array({"n1"}));
  server_.stop();
  EXPECT_EQ(json::parse(call("/filter", args.dump()).body)["NodeNames"], json::array({"n1"}));
  EXPECT_THAT(json::parse(call("/bind", binding.dump()).body)["Error"].get<std::string>(),
              AnyOf(HasSubstr("no answer from https://"), HasSubstr("cannot be listed"), HasSubstr("is too slow")));
  EXPECT_TRUE(replica_->zones()["promises"].empty());
  server_.start();
  EXPECT_TRUE(eventually([&] { return bind("a", "n1").empty(); }));
  EXPECT_EQ(zone_of("a"), "n1 [0]");
}

TEST_F(ExtenderTest, RefusesWhatIsWrongAndGoesOn) {
  publish({.zones = {{4}}});
  start();
  make_pod("a");
  EXPECT_THAT(json::parse(call("/filter", R"({"Pod":{},"Nodes":{"items":[]}})").body)["Error"].get<std::string>(),
              HasSubstr("nodeCacheCapable: true"));
  EXPECT_THAT(json::parse(call("/filter", "{\"Pod\":").body)["Error"].get<std::string>(), HasSubstr("no JSON object"));
  EXPECT_THAT(json::parse(call("/bind", "{}").body)["Error"].get<std::string>(), HasSubstr("it has no PodName"));
  EXPECT_EQ(call("/prioritize", "[]").status, 400);
  EXPECT_EQ(call("/other", "{}").status, 404);
  EXPECT_EQ(call("/filter", std::string((16 << 20) + 1, ' ')).status, 413);
  EXPECT_EQ(filter("a", {"unknown"})["NodeNames"], json::array({"unknown"}));
  make_pod("wrong", {{}}, {{"topolet.io/zone-policy", "two"}});
  EXPECT_EQ(filter("wrong", {"n1"})["FailedAndUnresolvableNodes"]["n1"],
            "topolet: annotation topolet.io/zone-policy: 'two' is none of single, fewest, any");
  const std::string url = "https://" + replica_->calls() + "/filter";
  EXPECT_EQ(post_tls(url, ca_, std::nullopt, "{}").status, 0);
  const TlsReply stranger = post_tls(url, ca_, ca_.client_certificate("system:node:n1"), "{}");
  EXPECT_EQ(stranger.status, 403);
  EXPECT_THAT(stranger.body, HasSubstr("'system:node:n1' in the client's certificate may not call"));
  {
    std::list<HttpConnection> idle;
    for (int i = 0; i < 1000; ++i) idle.emplace_back(replica_->calls());
    EXPECT_EQ(filter("a", {"n1"})["NodeNames"], json::array({"n1"}));
  }
  EXPECT_EQ(bind("a", "n1"), "");
  replica_->process().signal(SIGTERM);
  EXPECT_EQ(replica_->process().wait(), 0);
}

TEST_F(ExtenderTest, AnotherReplicaForwardsAndLeadsWhenTheFirstIsKilled) {
  publish({.zones = {{4}, {4}}});
  // Which ports they get is not known before; the second one has to find the first.
  const auto begin = [&](const std::string& name, int port) {
    return std::make_unique<Replica>(
        folder_, name,
        std::vector<std::string>{"--lease=default/l", "--lease-duration=3", fmt::format("--listen=127.0.0.1:{}", port),
                                 fmt::format("--advertise=127.0.0.1:{}", port)});
  };
  const auto free_port = [] {
    boost::asio::io_context context;
    boost::asio::ip::tcp::acceptor acceptor(context, {boost::asio::ip::make_address("127.0.0.1"), 0});
    return static_cast<int>(acceptor.local_endpoint().port());
  };
  auto first = begin("first", free_port());
  ASSERT_TRUE(eventually([&] { return first->is_ready() && first->leads(); })) << first->log();
  auto second = begin("second", free_port());
  ASSERT_TRUE(eventually([&] { return second->is_ready(); })) << second->log();
  for (const char* name : {"a", "b", "c"}) make_pod(name);
  ASSERT_TRUE(eventually([&] { return second->log().find("first_") != std::string::npos; })) << second->log();
  EXPECT_EQ(filter("a", {"n1"}, second.get())["NodeNames"], json::array({"n1"}));
  EXPECT_EQ(bind("a", "n1", second.get()), "") << second->log();
  EXPECT_EQ(zone_of("a"), "n1 [0]");
  EXPECT_EQ(first->zones()["promises"].size(), 1U);
  EXPECT_THAT(second->metrics(), HasSubstr("topolet_extender_calls_total{call=\"bind\",outcome=\"forwarded\"} 1"));
  first->process().signal(SIGKILL);
  EXPECT_EQ(filter("b", {"n1"}, second.get())["NodeNames"], json::array({"n1"})) << "from what it knows";
  ASSERT_TRUE(eventually([&] { return second->leads(); })) << second->log();
  EXPECT_TRUE(eventually([&] { return bind("b", "n1", second.get()).empty(); }));
  EXPECT_EQ(zone_of("b"), "n1 [1]") << "what the first has promised is read from the pods";
  EXPECT_THAT(bind("c", "n1", second.get()), HasSubstr("its zones have no 4 free CPUs, but 0"));
  // One that ends in order gives the Lease up.
  second->process().signal(SIGTERM);
  EXPECT_EQ(second->process().wait(), 0);
  const json lease = *server_.get("/apis/coordination.k8s.io/v1/leases", "l", "default");
  EXPECT_EQ(lease["spec"]["holderIdentity"], "");
}

TEST_F(ExtenderTest, SeveralReplicasNeedACertificateThatIsForClientsToo) {
  const Certificate own = ca_.server_certificate();
  folder_.write("tls.crt", own.certificate_pem);
  folder_.write("tls.key", own.key_pem);
  Replica replica(folder_, "one", {"--advertise=127.0.0.1:1", "--listen=127.0.0.1:0"});
  EXPECT_EQ(replica.process().wait(), 1);
  EXPECT_THAT(replica.log(), HasSubstr("add clientAuth to its extended key usage"));
}

TEST(ExtenderOptionsTest, AreRefusedByName) {
  const TempDir folder;
  const auto output_of = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {TOPOLET_EXTENDER};
    command.insert(command.end(), options.begin(), options.end());
    const std::string file = folder.file("out");
    std::ofstream(file, std::ios::trunc).close();
    Process process(command, file);
    const int code = process.wait();
    return fmt::format("{}: {}", code, folder.read("out"));
  };
  EXPECT_THAT(output_of({"--zone-policy=one"}), StartsWith("2: topolet-extender: --zone-policy: 'one' is none of"));
  EXPECT_THAT(output_of({"--lease=x"}), StartsWith("2: topolet-extender: --lease=x: write NAMESPACE/NAME, or none"));
  EXPECT_THAT(output_of({"--lease=a/b"}), HasSubstr("give --advertise ADDRESS:PORT or set $POD_IP"));
  for (const char* unreachable : {"0.0.0.0:9473", "[::]:9473", "192.0.2.7:0", "extender.example:9473", "192.0.2.7"}) {
    EXPECT_THAT(output_of({fmt::format("--advertise={}", unreachable)}),
                HasSubstr("at which the other replicas reach this one"))
        << unreachable;
  }
  EXPECT_THAT(output_of({"--client-name", ""}), HasSubstr("--client-name: it is empty"));
  EXPECT_THAT(output_of({"--debug-address=0.0.0.0:1"}), HasSubstr("use a loopback address"));
  EXPECT_THAT(output_of({"--lease=none", "--certificate=/nowhere/c"}),
              AllOf(StartsWith("1: "), HasSubstr("/nowhere/c: ")));
  EXPECT_THAT(output_of({"--kubernetes=here"}), HasSubstr("write in-cluster, or the absolute path"));
}

}  // namespace
}  // namespace topolet::extender
