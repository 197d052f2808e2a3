// The stand-in for the API server, as one that behaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/cluster_api/apiserver_client.hpp"

namespace topolet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ApiServerTest, LetsInWhoHasATokenOrACertificate) {
  server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  EXPECT_EQ(client_.get(kNodes + "/n1").code, 200);
  client_.token = "wrong";
  const Reply refused = client_.get(kNodes + "/n1");
  EXPECT_EQ(refused.code, 401);
  EXPECT_EQ(refused.reason(), "Unauthorized");
  EXPECT_EQ(client_.get(kNodes + "?watch=1").code, 401);
  server_.set_tokens({"wrong"});
  EXPECT_EQ(client_.get(kNodes + "/n1").code, 200);

  Client certified(server_);
  certified.token = "";
  certified.own_certificate = server_.ca().client_certificate("agent", {"nodes"});
  EXPECT_EQ(certified.get(kNodes + "/n1").code, 200);
  Client foreign(server_);
  foreign.token = "";
  foreign.own_certificate = Ca().client_certificate("agent");
  EXPECT_EQ(foreign.get(kNodes + "/n1").code, 401);
}

TEST_F(ApiServerTest, IsNotTrustedWithTheCertificateOfAnotherAuthority) {
  EXPECT_EQ(client_.get(kPods).result, CURLE_OK);
  const Ca other;
  server_.restart(other.server_certificate());
  EXPECT_EQ(client_.get(kPods).result, CURLE_PEER_FAILED_VERIFICATION);
  server_.restart(server_.ca().server_certificate(
      {.common_name = "late", .alternative_names = "IP:127.0.0.1", .valid_until = std::chrono::seconds(-60)}));
  EXPECT_EQ(client_.get(kPods).result, CURLE_PEER_FAILED_VERIFICATION) << "it has expired";
  server_.restart(
      server_.ca().server_certificate({.common_name = "elsewhere", .alternative_names = "DNS:elsewhere.example"}));
  EXPECT_EQ(client_.get(kPods).result, CURLE_PEER_FAILED_VERIFICATION) << "it is for another name";
  server_.restart(server_.ca().server_certificate());
  EXPECT_EQ(client_.get(kPods).result, CURLE_OK);
}

TEST_F(ApiServerTest, CreatesReadsReplacesAndDeletes) {
  const Reply created = client_.send("POST", kTopologies, topology("n1", "8"));
  ASSERT_EQ(created.code, 201) << created.text;
  EXPECT_FALSE(metadata_text(created.json(), "uid").empty());
  const Reply again = client_.send("POST", kTopologies, topology("n1", "8"));
  EXPECT_EQ(again.code, 409);
  EXPECT_EQ(again.reason(), "AlreadyExists");

  Json object = client_.get(kTopologies + "/n1").json();
  EXPECT_EQ(object, created.json());
  object["zones"][0]["resources"][0]["available"] = "4";
  const Reply replaced = client_.send("PUT", kTopologies + "/n1", object);
  ASSERT_EQ(replaced.code, 200) << replaced.text;
  EXPECT_NE(version_of(replaced.json()), version_of(created.json()));
  const Reply outdated = client_.send("PUT", kTopologies + "/n1", object);
  EXPECT_EQ(outdated.code, 409);
  EXPECT_EQ(outdated.reason(), "Conflict");

  const Reply identical = client_.send("PUT", kTopologies + "/n1", replaced.json());
  EXPECT_EQ(identical.code, 200);
  EXPECT_EQ(version_of(identical.json()), version_of(replaced.json()));
  EXPECT_THAT(server_.history(kTopologies), SizeIs(2));

  EXPECT_EQ(client_.send("DELETE", kTopologies + "/n1").code, 200);
  EXPECT_EQ(client_.get(kTopologies + "/n1").code, 404);
  EXPECT_EQ(client_.send("PUT", kTopologies + "/n1", object).reason(), "NotFound");
  EXPECT_EQ(client_.send("DELETE", kTopologies + "/n1").code, 404);
  const auto history = server_.history(kTopologies);
  ASSERT_THAT(history, SizeIs(3));
  EXPECT_EQ(history[2].type, ChangeType::kDeleted);
  EXPECT_LE(history[0].time, history[2].time);
}

TEST_F(ApiServerTest, RefusesWhatTheRealOneRefuses) {
  const auto code = [&](const char* method, const std::string& target, const Json& body) {
    return client_.send(method, target, body).code;
  };
  EXPECT_EQ(client_.send_text("POST", kWebPods, "{").code, 400);
  EXPECT_EQ(code("POST", kWebPods, topology("n1", "1")), 400) << "another kind";
  EXPECT_EQ(code("POST", "/api/v1/namespaces/other/pods", pod("a")), 400) << "another namespace";
  EXPECT_EQ(code("POST", kPods, pod("a")), 405);
  EXPECT_EQ(code("POST", kWebPods, pod("A_b")), 422);
  EXPECT_EQ(code("POST", "/api/v1/namespaces/web/secrets", pod("a")), 404);
  Json no_available = topology("n1", "1");
  no_available["zones"][0]["resources"][0].erase("available");
  const Reply invalid = client_.send("POST", kTopologies, no_available);
  EXPECT_EQ(invalid.code, 422);
  EXPECT_THAT(invalid.json().value("message", ""), HasSubstr("zones.resources"));
  server_.put(kTopologies, topology("n1", "1"));
  EXPECT_EQ(code("PUT", kTopologies + "/n1", topology("n1", "2")), 422) << "without a resourceVersion";
  EXPECT_EQ(code("PUT", kTopologies + "/n1", topology("n2", "2")), 400) << "another name";
  Json event = {{"apiVersion", "v1"}, {"kind", "Event"}, {"metadata", {{"generateName", "web."}}}};
  event["involvedObject"] = {{"namespace", "other"}, {"name", "a"}};
  EXPECT_EQ(code("POST", "/api/v1/namespaces/web/events", event), 422);
  event["involvedObject"]["namespace"] = "web";
  EXPECT_EQ(code("POST", "/api/v1/namespaces/web/events", event), 201);
  EXPECT_EQ(client_.get(kPods + "?fieldSelector=spec.nonsense%3Dx").code, 400);
  EXPECT_EQ(client_.get(kPods + "?labelSelector=a%3Db").code, 400);
  const Reply unknown = client_.get("/apis/none/v1/things");
  EXPECT_EQ(unknown.code, 404);
  EXPECT_TRUE(unknown.json().is_discarded()) << "plain text";
}

TEST_F(ApiServerTest, MergesPatches) {
  const Json node =
      server_.put(kNodes, {{"metadata", {{"name", "n1"}, {"annotations", {{"old", "1"}, {"kept", "2"}}}}}});
  const Json patch = {{"metadata", {{"annotations", {{"old", nullptr}, {"new", "3"}}}}}};
  const Reply patched = client_.send("PATCH", kNodes + "/n1", patch);
  ASSERT_EQ(patched.code, 200) << patched.text;
  EXPECT_EQ(patched.json()["metadata"]["annotations"], Json({{"kept", "2"}, {"new", "3"}}));
  EXPECT_EQ(version_of(client_.send("PATCH", kNodes + "/n1", patch).json()), version_of(patched.json()));
  const Json outdated = {{"metadata", {{"resourceVersion", version_of(node)}, {"annotations", {{"x", "y"}}}}}};
  EXPECT_EQ(client_.send("PATCH", kNodes + "/n1", outdated).code, 409);
  EXPECT_EQ(client_.send("PATCH", kNodes + "/n2", patch).code, 404);
}

TEST_F(ApiServerTest, ListsBySelectorAndNamespace) {
  server_.put(kWebPods, pod("a"));
  server_.put(kWebPods, pod("b", "n2"));
  server_.put("/api/v1/namespaces/db/pods", {{"metadata", {{"name", "c"}}}, {"spec", {{"nodeName", "n1"}}}});
  const Json list = client_.get(kPods).json();
  EXPECT_EQ(list.at("kind"), "PodList");
  EXPECT_THAT(names(list), ElementsAre("c", "a", "b"));
  EXPECT_FALSE(list.at("items")[0].contains("kind"));
  EXPECT_THAT(names(client_.get(kPods + "?fieldSelector=spec.nodeName%3Dn1").json()), ElementsAre("c", "a"));
  EXPECT_THAT(names(client_.get(kWebPods + "?fieldSelector=spec.nodeName!%3Dn1").json()), ElementsAre("b"));
  EXPECT_THAT(names(client_.get("/api/v1/namespaces/none/pods").json()), IsEmpty());
  server_.put(kTopologies, topology("n1", "1"));
  EXPECT_EQ(client_.get(kTopologies).json().at("items")[0].at("kind"), "NodeResourceTopology");
}

TEST_F(ApiServerTest, ListsInPagesOfOneMoment) {
  for (const char* name : {"a", "b", "c", "d"}) server_.put(kWebPods, pod(name));
  const Json first = client_.get(kPods + "?limit=2").json();
  EXPECT_THAT(names(first), ElementsAre("a", "b"));
  EXPECT_EQ(first.at("metadata").at("remainingItemCount"), 2);
  server_.remove(kWebPods, "c");
  server_.put(kWebPods, pod("e"));
  const std::string next = kPods + "?limit=2&continue=" + metadata_text(first, "continue");
  const Json second = client_.get(next).json();
  EXPECT_THAT(names(second), ElementsAre("c", "d"));
  EXPECT_EQ(version_of(second), version_of(first));
  EXPECT_FALSE(second.at("metadata").contains("continue"));
  server_.compact();
  EXPECT_EQ(client_.get(next).code, 410);
}

TEST_F(ApiServerTest, WatchesWhatChanges) {
  server_.put(kWebPods, pod("a"));
  Watch watch(server_, watch_target(kPods));
  Watch from_anywhere(server_, kPods + "?watch=true");
  EXPECT_THAT(from_anywhere.events(1), ElementsAre("ADDED a"));
  ASSERT_TRUE(is_watched(2));
  client_.send("POST", kWebPods, pod("b"));
  server_.put(kWebPods, pod("b", "n2"));
  server_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  server_.remove(kPods, "a", "web");
  EXPECT_THAT(watch.events(3), ElementsAre("ADDED b", "MODIFIED b", "DELETED a"));
  EXPECT_THAT(from_anywhere.events(4), SizeIs(4));
  server_.end_watches();
  EXPECT_EQ(watch.reply().result, CURLE_OK);
}

TEST_F(ApiServerTest, TellsAWatchThatAnObjectStoppedMatching) {
  Watch watch(server_, watch_target(kPods, "&fieldSelector=spec.nodeName%3Dn1"));
  ASSERT_TRUE(is_watched());
  server_.put(kWebPods, pod("a"));
  server_.put(kWebPods, pod("x", "n2"));
  const Json moved = server_.put(kWebPods, pod("a", "n2"));
  server_.put(kWebPods, pod("x", "n1"));
  EXPECT_THAT(watch.events(3), ElementsAre("ADDED a", "DELETED a", "ADDED x"));
  EXPECT_THAT(watch.text_with(""), HasSubstr(R"("resourceVersion":")" + version_of(moved) + '"'));
}

TEST_F(ApiServerTest, EndsAWatchAfterItsTimeWithABookmark) {
  Watch watch(server_, watch_target(kPods, "&allowWatchBookmarks=true&timeoutSeconds=9"));
  ASSERT_TRUE(is_watched());
  clock_.advance(std::chrono::milliseconds(8999));
  server_.put(kWebPods, pod("early"));
  EXPECT_THAT(watch.events(1), ElementsAre("ADDED early"));
  clock_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(watch.reply().result, CURLE_OK);
  EXPECT_THAT(watch.events(0), ElementsAre("ADDED early", "BOOKMARK"));
  EXPECT_EQ(client_.get(kPods).code, 200) << "the connection can be used again";
  Watch asked(server_, watch_target(kPods, "&allowWatchBookmarks=true"));
  Watch without(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched(2));
  server_.put(kWebPods, pod("a"));
  server_.send_bookmarks();
  EXPECT_THAT(asked.events(2), ElementsAre("ADDED a", "BOOKMARK"));
  server_.put(kWebPods, pod("b"));
  EXPECT_THAT(without.events(2), ElementsAre("ADDED a", "ADDED b"));
}

TEST_F(ApiServerTest, TellsAWatchThatItsVersionHasExpired) {
  const std::string target = watch_target(kPods);
  server_.compact();
  Watch watch(server_, target);
  EXPECT_EQ(watch.reply().code, 200);
  EXPECT_THAT(watch.events(1), ElementsAre("ERROR"));
  EXPECT_THAT(watch.text_with("ERROR"), HasSubstr("\"code\":410"));

  ApiServer plain({.tokens = {"secret"}, .expired_watch_gets_event = false});
  Client client(plain);
  plain.compact();
  const Reply refused = client.get(kPods + "?watch=1&resourceVersion=1");
  EXPECT_EQ(refused.code, 410);
  EXPECT_EQ(refused.reason(), "Expired");
}

TEST_F(ApiServerTest, SendsAnyTextToWatches) {
  Watch watch(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched());
  server_.send_to_watches(kNodes, "not for it\n");
  server_.send_to_watches(kPods, "nonsense\n");
  EXPECT_THAT(watch.events(1), ElementsAre("?"));
}

TEST_F(ApiServerTest, LogsWhatIsAsked) {
  client_.send_text("PATCH", kNodes + "/n1?dryRun=All%2Cx", "{\"a\":1}");
  client_.get(kNodes);
  const auto requests = server_.requests();
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_EQ(requests[0].method, "PATCH");
  EXPECT_EQ(requests[0].target, kNodes + "/n1?dryRun=All%2Cx");
  EXPECT_EQ(requests[0].path, kNodes + "/n1");
  EXPECT_EQ(requests[0].query.at("dryRun"), "All,x");
  EXPECT_EQ(requests[0].body, "{\"a\":1}");
  EXPECT_EQ(requests[0].authorization, "Bearer secret");
  EXPECT_EQ(requests[0].content_type, "application/merge-patch+json");
  EXPECT_EQ(requests[0].answered, 404u);
  EXPECT_EQ(requests[1].connection, requests[0].connection) << "it was kept";
  EXPECT_THAT(server_.requests("GET"), SizeIs(1));
  EXPECT_THAT(server_.requests("", kPods), IsEmpty());
}

TEST_F(ApiServerTest, TakesABodyThatWaitsForItsLeave) {
  Json large = pod("a");
  large["metadata"]["annotations"]["large"] = std::string(2 << 20, 'x');
  EXPECT_EQ(client_.send("POST", kWebPods, large).code, 201);
  EXPECT_EQ(server_.get(kWebPods, "a")->at("metadata").at("annotations"), large["metadata"]["annotations"]);
}

TEST_F(ApiServerTest, DropsACollection) {
  server_.put(kTopologies, topology("n1", "1"));
  server_.drop_collection(kTopologies);
  EXPECT_EQ(client_.get(kTopologies + "/n1").code, 404);
  EXPECT_THROW(server_.put(kTopologies, topology("n1", "1")), std::invalid_argument);
  server_.add_collection({.path = kTopologies, .kind = "NodeResourceTopology", .is_custom = true});
  EXPECT_EQ(client_.get(kTopologies).code, 200);
  EXPECT_EQ(client_.get(kTopologies + "/n1").reason(), "NotFound");
}

}  // namespace
}  // namespace topolet::testing
