// The client of the Kubernetes API against a server that misbehaves.
#include "cluster/api/api_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <mutex>

#include "cluster/api/reflector.hpp"
#include "tests/cluster_api/apiserver.hpp"
#include "tests/cluster_api/loop_time.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::api {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using topolet::testing::eventually;
using topolet::testing::ManualClock;
using topolet::testing::pass_time_until;
using StandIn = topolet::testing::ApiServer;

const std::string kPods = "/api/v1/pods";
const std::string kNodes = "/api/v1/nodes";

json pod(const std::string& name, const std::string& node = "n1") {
  return {{"metadata", {{"namespace", "default"}, {"name", name}}}, {"spec", {{"nodeName", node}}}};
}

class ApiClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_token("secret");
    server_.set_tokens({"secret"});
  }
  void write_token(const std::string& token) { std::ofstream(token_file()) << token << '\n'; }
  std::string token_file() const { return directory_.file("token"); }
  api::ApiServer settings() const {
    api::ApiServer settings;
    settings.url = server_.url();
    settings.ca.text = server_.ca_pem();
    settings.token_file = token_file();
    return settings;
  }
  void start(const api::ApiServer& settings) {
    client_ = std::make_unique<ApiClient>(loop_, settings);
    loop_.start();
  }
  std::future<ApiAnswer> begin(const ApiRequest& request) {
    const auto answer = std::make_shared<std::promise<ApiAnswer>>();
    loop_.post([this, request, answer] {
      client_->request(request, [answer](ApiAnswer came) { answer->set_value(std::move(came)); });
    });
    return answer->get_future();
  }
  static bool is_answered(const std::future<ApiAnswer>& answer, std::chrono::milliseconds patience = {}) {
    return answer.wait_for(patience) == std::future_status::ready;
  }
  static ApiAnswer wait_for(std::future<ApiAnswer> answer) {
    const bool has_come = is_answered(answer, std::chrono::minutes(1));
    EXPECT_TRUE(has_come);
    return has_come ? answer.get() : ApiAnswer();
  }
  ApiAnswer ask(const ApiRequest& request) { return wait_for(begin(request)); }
  ApiAnswer get_node() { return ask({.verb = "get", .path = kNodes + "/n1"}); }
  void advance(milliseconds time) { topolet::testing::advance(loop_, clock_, time); }

  /// Follows with a reflector, and notes its events as "list a,b" and "ADDED c".
  void follow(seconds duration = seconds(300)) {
    Reflector::Handlers handlers;
    handlers.on_list = [this](const std::vector<json>& objects) {
      std::string names;
      for (const json& object : objects) names += ' ' + object["metadata"]["name"].get<std::string>();
      tell("list" + names);
    };
    handlers.on_change = [this](std::string_view type, const json& object) {
      tell(std::string(type) + ' ' + object["metadata"]["name"].get<std::string>());
    };
    Reflector::Options options{.name = "the pods", .path = kPods, .field_selector = "spec.nodeName=n1"};
    options.watch_duration = duration;
    options.first_pause = milliseconds(200);
    options.longest_pause = milliseconds(1000);
    reflector_ = std::make_unique<Reflector>(*client_, options, handlers, *log_);
    loop_.post([this] { reflector_->start(); });
  }
  void tell(const std::string& text) {
    std::lock_guard lock(mutex_);
    told_.push_back(text);
  }
  std::vector<std::string> told() const {
    std::lock_guard lock(mutex_);
    return told_;
  }
  /// Lets time pass until so much was told.
  std::vector<std::string> told(std::size_t count, HttpLoop& loop) {
    EXPECT_TRUE(pass_time_until(loop, clock_, [&] { return told().size() >= count; }));
    return told();
  }
  std::vector<std::string> told(std::size_t count) { return told(count, loop_); }
  /// Until the watch is open that is the client's so-and-so-many.
  void wait_for_watch(std::size_t number) {
    EXPECT_TRUE(server_.wait_for(
        [&] { return server_.requests("WATCH", kPods).size() == number && server_.open_watches(kPods) == 1; }));
  }
  /// How often the pods were listed or watched, when all that was sent until now has come to the server.
  std::size_t asked(const std::string& method) {
    ask({.verb = "get", .path = kNodes, .waits_when_asked_to = false});
    return server_.requests(method, kPods).size();
  }
  void TearDown() override {
    loop_.stop();
    reflector_.reset();
  }

  TempDir directory_;
  ManualClock clock_;
  StandIn server_{StandIn::Options{.clock = clock_.clock()}};
  std::shared_ptr<Log> log_ = make_silent_log();
  HttpLoop loop_{clock_.clock()};
  std::unique_ptr<ApiClient> client_;
  std::unique_ptr<Reflector> reflector_;
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

TEST_F(ApiClientTest, GetsWhatIsThereAndSaysWhatIsNot) {
  server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  start(settings());
  const ApiAnswer answer = get_node();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body["metadata"]["name"], "n1");
  EXPECT_THAT(answer.error, IsEmpty());
  const ApiAnswer missing = ask({.verb = "get", .path = kNodes + "/n2"});
  EXPECT_EQ(missing.status, 404);
  EXPECT_TRUE(missing.body.is_null());
  EXPECT_THAT(missing.error, HasSubstr("the API server answered 404: "));
  EXPECT_EQ(client_->counts(), (ApiClient::Counts{{{"get", 200}, 1}, {{"get", 404}, 1}}));
}

TEST_F(ApiClientTest, ReadsATokenAnewThatIsNotKnownAnyMore) {
  server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  start(settings());
  EXPECT_EQ(get_node().status, 200);
  write_token("newer");
  server_.set_tokens({"newer"});
  EXPECT_EQ(get_node().status, 200) << "once with the old token, and then with the new one";
  server_.set_tokens({"none"});
  const ApiAnswer refused = get_node();
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.error, HasSubstr("the token or the client certificate is not known"));
  EXPECT_THAT(server_.requests("GET"), SizeIs(5)) << "a second try each time, and no more";
}

TEST_F(ApiClientTest, TakesAClientCertificateInPlaceOfAToken) {
  server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  const topolet::testing::Certificate mine = server_.ca().client_certificate("agent");
  api::ApiServer settings = this->settings();
  settings.token_file.clear();
  settings.client_certificate.text = mine.certificate_pem;
  settings.client_key.text = mine.key_pem;
  start(settings);
  EXPECT_EQ(get_node().status, 200);
}

TEST_F(ApiClientTest, TrustsNoOtherAuthority) {
  api::ApiServer settings = this->settings();
  settings.ca.text = topolet::testing::Ca().pem();
  start(settings);
  const ApiAnswer answer = get_node();
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.error, HasSubstr("no answer from " + server_.url()));
  EXPECT_THAT(answer.error, HasSubstr("certificate"));
  EXPECT_THAT(server_.requests(), IsEmpty()) << "and no token was sent";
}

TEST_F(ApiClientTest, ReadsTheTokenAgainEachMinute) {
  server_.set_tokens({"secret", "newer"});
  start(settings());
  get_node();
  write_token("newer");
  advance(minutes(1) - milliseconds(1));
  get_node();
  EXPECT_EQ(server_.requests().back().authorization, "Bearer secret");
  advance(milliseconds(1));
  get_node();
  EXPECT_EQ(server_.requests().back().authorization, "Bearer newer");
}

TEST_F(ApiClientTest, HoldsWhatIsAskedUntilTheServerWantsToBeAskedAgain) {
  server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  for (const auto& [asked_for, expected] :
       {std::pair<const char*, milliseconds>{"7", seconds(7)}, {"3600", minutes(2)}}) {
    const std::size_t before = server_.requests().size();
    server_.misbehave({.action = StandIn::AnswerStatus{.code = 429, .headers = {{"Retry-After", asked_for}}}});
    if (client_ == nullptr) start(settings());
    const ApiAnswer busy = get_node();
    EXPECT_EQ(busy.status, 429);
    EXPECT_EQ(busy.retry_after, seconds(std::stoi(asked_for)));
    std::future<ApiAnswer> held = begin({.verb = "get", .path = kNodes + "/n1"});
    advance(expected - milliseconds(1));
    EXPECT_EQ(ask({.verb = "get", .path = kNodes, .waits_when_asked_to = false}).status, 200);
    EXPECT_FALSE(is_answered(held));
    EXPECT_THAT(server_.requests(), SizeIs(before + 2));
    advance(milliseconds(1));
    EXPECT_EQ(wait_for(std::move(held)).status, 200) << asked_for;
  }
}

TEST_F(ApiClientTest, WaitsNotForLongForAServerThatIsAwayHoweverLongItSaysThatWillBe) {
  server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  server_.misbehave({.action = StandIn::AnswerStatus{.code = 503, .headers = {{"Retry-After", "60"}}}});
  start(settings());
  EXPECT_EQ(get_node().status, 503);
  std::future<ApiAnswer> held = begin({.verb = "get", .path = kNodes + "/n1"});
  advance(milliseconds(4999));
  EXPECT_FALSE(is_answered(held));
  advance(milliseconds(1));
  EXPECT_EQ(wait_for(std::move(held)).status, 200);
}

TEST(RefusalTest, NamesTheFileThatGrantsIt) {
  const Grants agent = {.account = "topolet-agent", .rights = "rbac.yaml", .pod = "agent.yaml", .policies = "p.yaml"};
  const auto cannot = [](const std::string& user, const std::string& verb, const std::string& resource) {
    return "x \"n1\" is forbidden: User \"" + user + "\" cannot " + verb + " resource \"" + resource +
           "\" in API group \"\" at the cluster scope";
  };
  const std::string own = "system:serviceaccount:topolet-system:topolet-agent";
  EXPECT_EQ(advice_on_refusal(agent, cannot(own, "patch", "nodes")),
            "; rbac.yaml grants it (patch nodes) to the service account topolet-agent");
  EXPECT_EQ(
      advice_on_refusal(agent, cannot("system:serviceaccount:a:default", "list", "pods")),
      "; rbac.yaml grants it (list pods) to the service account topolet-agent, which the pod of agent.yaml has; this "
      "is system:serviceaccount:a:default");
  EXPECT_THAT(advice_on_refusal(agent, cannot("system:anonymous", "list", "pods")),
              HasSubstr("this request was nobody's"));
  EXPECT_EQ(advice_on_refusal(agent, ""), "; rbac.yaml grants it to the service account topolet-agent");
  const auto denied_by = [](const std::string& policy) {
    return "pods \"p\" is forbidden: ValidatingAdmissionPolicy '" + policy + "' with binding 'b' denied request: no";
  };
  EXPECT_THAT(
      advice_on_refusal(agent, denied_by("topolet-agent-topology")),
      ::testing::AllOf(HasSubstr("; p.yaml lets an agent write about its own node only"), HasSubstr("agent.yaml")));
  EXPECT_THAT(advice_on_refusal(agent, denied_by("topolet-zone-annotation")), HasSubstr("; p.yaml names who may set"));
  EXPECT_EQ(advice_on_refusal(agent, denied_by("topolet-qos-class")), "; p.yaml has that policy");
  EXPECT_EQ(advice_on_refusal(agent, denied_by("images")), "; that policy is none of p.yaml");
  EXPECT_EQ(advice_on_refusal(agent, "admission webhook \"w\" denied the request: no"), "");
}

TEST_F(ApiClientTest, SaysWhichFileGrantsWhatIsRefused) {
  const std::string message =
      "nodes \"n1\" is forbidden: User \"u\" cannot get resource \"nodes\" in API group \"\" at the cluster scope";
  server_.misbehave({.action = StandIn::AnswerStatus{.code = 403, .message = message}});
  HttpLoop loop(clock_.clock());
  ApiClient client(loop, settings(),
                   {.account = "topolet-extender", .rights = "extender.yaml", .pod = "extender.yaml"});
  loop.start();
  std::promise<std::string> error;
  loop.post([&] {
    client.request({.verb = "get", .path = kNodes + "/n1"},
                   [&](const ApiAnswer& answer) { error.set_value(answer.error); });
  });
  EXPECT_THAT(
      error.get_future().get(),
      HasSubstr("; extender.yaml grants it (get nodes) to the service account topolet-extender, which the pod"));
  loop.stop();
}

TEST_F(ApiClientTest, TakesNothingHalfForAnAnswer) {
  server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  server_.misbehave({.action = StandIn::HalfBody{}});
  server_.misbehave({.action = StandIn::AnswerText{}});
  server_.misbehave({.action = StandIn::Silence{}});
  start(settings());
  const ApiAnswer half = get_node();
  EXPECT_EQ(half.status, 0);
  EXPECT_TRUE(half.body.is_null());
  EXPECT_THAT(get_node().error, HasSubstr("is not JSON"));
  ApiRequest impatient{.verb = "get", .path = kNodes + "/n1"};
  impatient.timeout = milliseconds(300);
  std::future<ApiAnswer> unheard = begin(impatient);
  ASSERT_TRUE(server_.wait_for([&] { return server_.requests().size() == 3; }));
  advance(milliseconds(299));
  EXPECT_FALSE(is_answered(unheard));
  advance(milliseconds(1));
  EXPECT_THAT(wait_for(std::move(unheard)).error, HasSubstr("timed out after 300 milliseconds with 0 bytes"));
  EXPECT_EQ(get_node().status, 200);
}

TEST_F(ApiClientTest, FollowsACollectionThroughPagesCutLinesAndEnds) {
  for (int i = 0; i < 501; ++i) server_.put(kPods, pod("p" + std::to_string(1000 + i)));
  server_.put(kPods, pod("elsewhere", "n2"));
  server_.misbehave({.method = "WATCH", .action = StandIn::SplitWatch{.time = milliseconds(50)}});
  start(settings());
  follow();
  const std::vector<std::string> listed = told(1);
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_EQ(std::count(listed[0].begin(), listed[0].end(), ' '), 501);
  wait_for_watch(1);
  server_.put(kPods, pod("a"));
  EXPECT_EQ(told(2).back(), "ADDED a");
  server_.misbehave({.method = "WATCH", .action = StandIn::CutWatch{}});
  server_.end_watches();
  wait_for_watch(2);
  server_.put(kPods, pod("b"));  // the line is cut, and comes again on the next watch
  EXPECT_EQ(told(3).back(), "ADDED b");
  server_.close_connections();
  server_.remove(kPods, "a", "default");
  EXPECT_EQ(told(4).back(), "DELETED a");
  EXPECT_THAT(told(), SizeIs(4)) << "nothing was told twice, and nothing listed again";
}

TEST_F(ApiClientTest, ListsAgainWhereTheVersionHasExpired) {
  for (const bool as_event : {true, false}) {
    StandIn::Options options;
    options.expired_watch_gets_event = as_event;
    StandIn server(options);
    api::ApiServer settings;
    settings.url = server.url();
    settings.ca.text = server.ca_pem();
    server.set_tokens({"t"});
    settings.token = "t";
    HttpLoop loop(clock_.clock());
    ApiClient client(loop, settings);
    int lists = 0;
    Reflector reflector(
        client, {.name = "the pods", .path = kPods, .field_selector = ""},
        {.on_list = [&](const std::vector<json>& objects) { tell("list " + std::to_string(objects.size())), ++lists; },
         .on_change = [](std::string_view, const json&) {}},
        *log_);
    loop.post([&] { reflector.start(); });
    loop.start();
    told_.clear();
    EXPECT_THAT(told(1, loop), ElementsAre("list 0"));
    EXPECT_TRUE(server.wait_for([&] { return server.open_watches() == 1; }));
    server.stop();
    server.put(kPods, pod("missed"));
    server.compact();
    server.start();
    EXPECT_EQ(told(2, loop).back(), "list 1") << "as an event: " << as_event;
    loop.stop();
  }
}

/// Each try is two requests: it is repeated at once with the token as it is read anew.
TEST_F(ApiClientTest, TriesAgainLaterAfterEachTimeThatItIsRefused) {
  start(settings());
  server_.set_tokens({"other"});
  follow();
  const auto was_refused = [&](std::size_t times) {
    return eventually([&] { return client_->counts()[{"list", 401}] == 2 * times; });
  };
  ASSERT_TRUE(was_refused(2)) << "the second time without a pause";
  std::size_t tries = 2;
  for (const int pause_ms : {200, 400, 800, 1000, 1000}) {
    EXPECT_EQ(asked("GET"), 2 * tries);
    advance(milliseconds(pause_ms * 8 / 10 - 1));
    EXPECT_EQ(asked("GET"), 2 * tries) << "within 80 % of " << pause_ms;
    advance(milliseconds(pause_ms * 4 / 10 + 1));
    ASSERT_TRUE(was_refused(++tries)) << "within 120 % of " << pause_ms;
  }
  server_.set_tokens({"secret"});
  EXPECT_THAT(told(1), ElementsAre("list"));
  wait_for_watch(1);
}

TEST_F(ApiClientTest, EndsAWatchThatTheServerHasForgotten) {
  server_.misbehave({.method = "WATCH", .action = StandIn::SilentWatch{}});
  start(settings());
  follow(seconds(60));
  wait_for_watch(1);
  advance(seconds(70) - milliseconds(1));
  EXPECT_EQ(asked("WATCH"), 1U);
  advance(milliseconds(1));
  EXPECT_TRUE(server_.wait_for([&] { return server_.requests("WATCH", kPods).size() == 2; }));
}

TEST(ApiServerSettings, AreReadFromAKubeconfig) {
  const TempDir directory;
  std::ofstream(directory.file("config")) << R"(apiVersion: v1
kind: Config
current-context: second
clusters:
- name: a
  cluster: {server: "https://10.0.0.1:6443/", certificate-authority-data: Q0E=, tls-server-name: kubernetes}
- {name: b, cluster: {server: https://10.0.0.2, certificate-authority: ca.crt, proxy-url: "http://proxy:3128"}}
contexts:
- {name: first, context: {cluster: a, user: token}}
- {name: second, context: {cluster: b, user: certificate}}
- {name: third, context: {cluster: a, user: plugin}}
users:
- {name: token, user: {token: secret}}
- {name: certificate, user: {client-certificate: /etc/agent.crt, client-key: keys/agent.key}}
- {name: plugin, user: {exec: {command: get-token}}}
)";
  const auto with_context = [&](const std::string& name) {
    std::ifstream file(directory.file("config"));
    std::string text((std::istreambuf_iterator<char>(file)), {});
    text.replace(text.find("second"), 6, name);
    std::ofstream(directory.file("changed")) << text;
    return read_kubeconfig(directory.file("changed"));
  };
  const auto second = read_kubeconfig(directory.file("config"));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->url, "https://10.0.0.2");
  EXPECT_EQ(second->ca.file, directory.file("ca.crt"));
  EXPECT_EQ(second->client_certificate.file, "/etc/agent.crt");
  EXPECT_EQ(second->client_key.file, directory.file("keys/agent.key"));
  EXPECT_EQ(second->proxy_url, "http://proxy:3128");
  const auto first = with_context("first");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->url, "https://10.0.0.1:6443");
  EXPECT_EQ(first->ca.text, "CA");
  EXPECT_EQ(first->tls_server_name, "kubernetes");
  EXPECT_EQ(first->token, "secret");
  EXPECT_THAT(with_context("third").error().message, HasSubstr("'exec', which topolet does not use: give it a token"));
  EXPECT_THAT(with_context("fourth").error().message, HasSubstr("it has no 'fourth' among its contexts"));
  EXPECT_THAT(read_kubeconfig(directory.file("none")).error().message, HasSubstr("No such file"));
  std::ofstream(directory.file("broken")) << "a: [";
  EXPECT_THAT(read_kubeconfig(directory.file("broken")).error().message, HasSubstr("is not YAML"));
  std::ofstream(directory.file("loop")) << "a: &a [*a]";
  EXPECT_THAT(read_kubeconfig(directory.file("loop")).error().message, HasSubstr("too deep"));
}

TEST(ApiServerSettings, AreThoseOfThePodInACluster) {
  const TempDir directory;
  std::map<std::string, std::string> variables;
  const PodEnvironment environment{[&](const std::string& name) -> std::optional<std::string> {
                                     const auto found = variables.find(name);
                                     return found == variables.end() ? std::nullopt : std::optional(found->second);
                                   },
                                   directory.file("")};
  EXPECT_THAT(server_of_this_cluster(environment).error().message, HasSubstr("give it a kubeconfig"));
  variables = {{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  EXPECT_THAT(server_of_this_cluster(environment).error().message, HasSubstr("automountServiceAccountToken"));
  std::ofstream(directory.file("ca.crt")) << "CA";
  std::ofstream(directory.file("token")) << "T";
  const auto found = server_of_this_cluster(environment);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->url, "https://[fd00::1]:443");
}

}  // namespace
}  // namespace topolet::api
