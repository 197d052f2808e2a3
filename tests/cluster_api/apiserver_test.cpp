#include "tests/cluster_api/apiserver.hpp"

#include <curl/curl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "core/base/mutex.hpp"

namespace topolet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

const std::string kPods = "/api/v1/pods";
const std::string kWebPods = "/api/v1/namespaces/web/pods";
const std::string kNodes = "/api/v1/nodes";
const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/web/leases";
const std::string kTopologies = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";

struct Reply {
  CURLcode result = CURLE_OK;
  long code = 0;
  std::string text{};
  std::string headers{};

  Json json() const { return Json::parse(text, nullptr, false); }
  std::string reason() const { return json().value("reason", ""); }
};

/// One handle, so that connections are kept as a client keeps them.
class Client {
 public:
  explicit Client(const ApiServer& server) : url_(server.url()), ca_pem_(server.ca_pem()) {}
  ~Client() {
    curl_easy_cleanup(handle_);
    curl_multi_cleanup(multi_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Reply send_text(const std::string& method, const std::string& target, const std::string& body) {
    curl_easy_reset(handle_);
    Reply reply;
    set(CURLOPT_URL, (url_ + target).c_str());
    set(CURLOPT_CUSTOMREQUEST, method.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, timeout_ms);
    set_trust();
    const auto append = +[](char* data, std::size_t size, std::size_t count, void* text) {
      static_cast<std::string*>(text)->append(data, size * count);
      return size * count;
    };
    set(CURLOPT_HEADERFUNCTION, append);
    set(CURLOPT_HEADERDATA, &reply.headers);
    set(CURLOPT_WRITEFUNCTION, on_data != nullptr ? on_data : append);
    set(CURLOPT_WRITEDATA, on_data != nullptr ? data_for : &reply.text);
    if (!body.empty()) {
      set(CURLOPT_POSTFIELDS, body.c_str());
      set(CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    }
    const std::string type = method == "PATCH" ? "application/merge-patch+json" : "application/json";
    curl_slist* headers = curl_slist_append(nullptr, ("Content-Type: " + type).c_str());
    if (!token.empty()) headers = curl_slist_append(headers, ("Authorization: Bearer " + token).c_str());
    set(CURLOPT_HTTPHEADER, headers);
    reply.result = perform();
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &reply.code);
    curl_slist_free_all(headers);
    return reply;
  }
  Reply send(const std::string& method, const std::string& target, const Json& body) {
    return send_text(method, target, body.dump());
  }
  Reply send(const std::string& method, const std::string& target) { return send_text(method, target, ""); }
  Reply get(const std::string& target) { return send("GET", target); }

  /// From another thread: closes the connection of the request that runs.
  void leave() {
    is_leaving_ = true;
    curl_multi_wakeup(multi_);
  }

  std::string token = "secret";
  Certificate own_certificate;
  long timeout_ms = 20000;
  curl_write_callback on_data = nullptr;
  void* data_for = nullptr;

 private:
  template <typename T>
  void set(CURLoption option, T value) {
    ASSERT_EQ(curl_easy_setopt(handle_, option, value), CURLE_OK);
  }
  /// As curl_easy_perform() does it, which nobody can wake.
  CURLcode perform() {
    curl_multi_add_handle(multi_, handle_);
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    int running = 1;
    while (!is_leaving_ && curl_multi_perform(multi_, &running) == CURLM_OK && running > 0) {
      curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
    int left = 0;
    if (const CURLMsg* message = curl_multi_info_read(multi_, &left)) result = message->data.result;
    curl_multi_remove_handle(multi_, handle_);
    return result;
  }
  static curl_blob blob(const std::string& text) {
    return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
  }
  void set_trust() {
    const curl_blob ca = blob(ca_pem_);
    set(CURLOPT_CAINFO_BLOB, &ca);
    if (own_certificate.key_pem.empty()) return;
    const curl_blob certificate = blob(own_certificate.certificate_pem);
    const curl_blob key = blob(own_certificate.key_pem);
    set(CURLOPT_SSLCERT_BLOB, &certificate);
    set(CURLOPT_SSLCERTTYPE, "PEM");
    set(CURLOPT_SSLKEY_BLOB, &key);
    set(CURLOPT_SSLKEYTYPE, "PEM");
  }

  CURL* const handle_ = curl_easy_init();
  CURLM* const multi_ = curl_multi_init();
  std::atomic<bool> is_leaving_{false};
  const std::string url_;
  const std::string ca_pem_;
};

/// A watch of its own thread, and what it got until now.
class Watch {
 public:
  Watch(const ApiServer& server, const std::string& target) : client_(server) {
    client_.on_data = [](char* data, std::size_t size, std::size_t count, void* watch) {
      static_cast<Watch*>(watch)->take({data, size * count});
      return size * count;
    };
    client_.data_for = this;
    done_ = std::async(std::launch::async, [this, target] { return client_.get(target); });
  }
  ~Watch() { client_.leave(); }

  /// "ADDED a", by the objects' names, until there are so many; BOOKMARK and ERROR without a name.
  std::vector<std::string> events(std::size_t count) {
    MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (whole_lines() < count && changed_.wait_until(mutex_, deadline)) {
    }
    std::vector<std::string> events;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const Json event = Json::parse(text_.substr(begin, end - begin), nullptr, false);
      if (event.is_discarded()) {
        events.push_back("?");
        continue;
      }
      const std::string name = metadata_text(event.at("object"), "name");
      events.push_back(event.at("type").get<std::string>() + (name.empty() ? "" : ' ' + name));
    }
    return events;
  }
  std::string text_with(const std::string& part) {
    MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (text_.find(part) == std::string::npos && changed_.wait_until(mutex_, deadline)) {
    }
    return text_;
  }
  /// Waits for the end.
  Reply reply() { return done_.get(); }
  bool goes_on() const { return done_.wait_for(std::chrono::seconds(0)) != std::future_status::ready; }

 private:
  void take(const std::string& data) {
    MutexLock lock(mutex_);
    text_ += data;
    changed_.notify_all();
  }
  std::size_t whole_lines() const TOPOLET_REQUIRES(mutex_) {
    return static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n'));
  }

  Client client_;
  Mutex mutex_;
  CondVar changed_;
  std::string text_ TOPOLET_GUARDED_BY(mutex_);
  std::future<Reply> done_;
};

Json pod(const std::string& name, const std::string& node = "n1") {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"namespace", "web"}, {"name", name}}},
          {"spec", {{"nodeName", node}}}};
}

Json topology(const std::string& name, const std::string& available) {
  const Json cpu = {{"name", "cpu"}, {"capacity", "8"}, {"allocatable", "8"}, {"available", available}};
  return {{"apiVersion", "topology.node.k8s.io/v1alpha2"},
          {"kind", "NodeResourceTopology"},
          {"metadata", {{"name", name}}},
          {"zones", {{{"name", "node-0"}, {"type", "Node"}, {"resources", Json::array({cpu})}}}}};
}

std::vector<std::string> names(const Json& list) {
  std::vector<std::string> found;
  for (const Json& item : list.at("items")) found.push_back(metadata_text(item, "name"));
  return found;
}

std::string version_of(const Json& object) { return metadata_text(object, "resourceVersion"); }

class ApiServerTest : public ::testing::Test {
 protected:
  static ApiServer::Options options() { return {.tokens = {"secret"}}; }
  std::string now() { return version_of(client_.get(kPods).json()); }
  std::string watch_target(const std::string& path, const std::string& more = "") {
    return path + "?watch=1&resourceVersion=" + now() + more;
  }
  bool is_watched(std::size_t watches = 1) {
    return server_.wait_for([&] { return server_.open_watches() == watches; });
  }
  void misbehave_once(ApiServer::Action action, const std::string& method = "", const std::string& path = "") {
    server_.misbehave({.method = method, .path_prefix = path, .action = std::move(action)});
  }

  ApiServer server_{options()};
  Client client_{server_};
};

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
  Watch watch(server_, watch_target(kPods, "&allowWatchBookmarks=true&timeoutSeconds=1"));
  EXPECT_EQ(watch.reply().result, CURLE_OK);
  EXPECT_THAT(watch.events(0), ElementsAre("BOOKMARK"));
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

TEST_F(ApiServerTest, AnswersAsToldSoManyTimes) {
  server_.misbehave({.method = "GET",
                     .path_prefix = kPods,
                     .times = 2,
                     .action = ApiServer::AnswerStatus{.code = 429, .headers = {{"Retry-After", "3"}}}});
  EXPECT_EQ(client_.get(kNodes).code, 200) << "another path";
  EXPECT_EQ(client_.send("POST", kPods, pod("a")).code, 405) << "another method";
  for (int i = 0; i < 2; ++i) {
    const Reply refused = client_.get(kPods);
    EXPECT_EQ(refused.code, 429);
    EXPECT_EQ(refused.reason(), "TooManyRequests");
    EXPECT_THAT(refused.headers, HasSubstr("Retry-After: 3\r\n"));
  }
  EXPECT_EQ(client_.get(kPods).code, 200);
  misbehave_once(ApiServer::AnswerStatus{.code = 410}, "WATCH");
  EXPECT_EQ(client_.get(kPods).code, 200) << "no watch";
  EXPECT_EQ(client_.get(kPods + "?watch=1").code, 410);
  misbehave_once(ApiServer::AnswerText{});
  EXPECT_TRUE(client_.get(kPods).json().is_discarded());
  misbehave_once(ApiServer::Drop{});
  server_.behave();
  EXPECT_EQ(client_.get(kPods).code, 200);
}

TEST_F(ApiServerTest, CutsAnswersOff) {
  misbehave_once(ApiServer::HalfBody{}, "POST");
  const Reply half = client_.send("POST", kWebPods, pod("a"));
  EXPECT_NE(half.result, CURLE_OK);
  EXPECT_EQ(half.code, 201);
  EXPECT_THAT(half.text, StartsWith("{"));
  EXPECT_TRUE(half.json().is_discarded());
  EXPECT_TRUE(server_.get(kWebPods, "a").has_value());

  client_.get(kPods);
  misbehave_once(ApiServer::LoseAnswer{}, "DELETE");
  EXPECT_EQ(client_.send("DELETE", kWebPods + "/a").code, 404)
      << "libcurl repeats it, as the connection was used before";
  EXPECT_THAT(server_.requests("DELETE"), SizeIs(2));
  EXPECT_FALSE(server_.get(kWebPods, "a").has_value());
  server_.misbehave({.method = "POST", .path_prefix = "", .times = 9, .action = ApiServer::Drop{}});
  EXPECT_NE(client_.send("POST", kWebPods, pod("a")).result, CURLE_OK);
  EXPECT_FALSE(server_.get(kWebPods, "a").has_value());
}

TEST_F(ApiServerTest, IsSilentOrSlow) {
  misbehave_once(ApiServer::Silence{});
  Client leaving(server_);
  auto silent = std::async(std::launch::async, [&] { return leaving.get(kPods); });
  ASSERT_TRUE(server_.wait_for([&] { return server_.requests().size() == 1; }));
  EXPECT_EQ(server_.requests()[0].answered, 0u);
  leaving.leave();
  silent.get();
  EXPECT_TRUE(server_.wait_for([&] { return server_.open_connections() == 0; })) << "the client's end is noticed";
  misbehave_once(ApiServer::Silence{.time = std::chrono::milliseconds(1)});
  EXPECT_EQ(client_.get(kPods).result, CURLE_GOT_NOTHING);
  misbehave_once(ApiServer::Delay{.time = std::chrono::milliseconds(1)});
  EXPECT_EQ(client_.get(kPods).code, 200);

  misbehave_once(ApiServer::Delay{}, "POST");
  auto slow = std::async(std::launch::async, [&] { return client_.send("POST", kWebPods, pod("a")); });
  ASSERT_TRUE(server_.wait_for([&] { return server_.requests("POST").size() == 1; }));
  EXPECT_FALSE(server_.get(kWebPods, "a").has_value()) << "not done yet";
  server_.release();
  EXPECT_EQ(slow.get().code, 201);
}

TEST_F(ApiServerTest, CutsAWatchInTheMiddleOfALine) {
  misbehave_once(ApiServer::CutWatch{.after_events = 1}, "WATCH");
  Watch watch(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched());
  server_.put(kWebPods, pod("a"));
  EXPECT_THAT(watch.events(1), ElementsAre("ADDED a"));
  EXPECT_TRUE(watch.goes_on());
  server_.put(kWebPods, pod("b"));
  EXPECT_NE(watch.reply().result, CURLE_OK);
  EXPECT_THAT(watch.text_with(""), Not(::testing::EndsWith("\n")));
  EXPECT_THAT(watch.events(1), SizeIs(1));
}

TEST_F(ApiServerTest, SplitsALineOfAWatch) {
  misbehave_once(ApiServer::SplitWatch{}, "WATCH");
  Watch watch(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched());
  server_.put(kWebPods, pod("a"));
  server_.put(kWebPods, pod("b"));
  EXPECT_THAT(watch.text_with("{"), Not(HasSubstr("\n")));
  server_.release();
  EXPECT_THAT(watch.events(2), ElementsAre("ADDED a", "ADDED b"));
}

TEST_F(ApiServerTest, LetsAWatchGoSilent) {
  misbehave_once(ApiServer::SilentWatch{.after_events = 1}, "WATCH");
  Watch silent(server_, watch_target(kPods, "&timeoutSeconds=1"));
  ASSERT_TRUE(is_watched(1));
  Watch other(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched(2));
  server_.put(kWebPods, pod("a"));
  server_.put(kWebPods, pod("b"));
  EXPECT_THAT(other.events(2), SizeIs(2));
  EXPECT_THAT(silent.events(1), ElementsAre("ADDED a"));
  Watch timed(server_, watch_target(kPods, "&timeoutSeconds=1"));
  EXPECT_EQ(timed.reply().result, CURLE_OK);
  EXPECT_TRUE(silent.goes_on()) << "past its time";
  server_.release();
  EXPECT_NE(silent.reply().result, CURLE_OK);
}

TEST_F(ApiServerTest, ClosesConnections) {
  Watch watch(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched());
  EXPECT_EQ(server_.open_connections(), 2u);
  server_.close_connections();
  EXPECT_EQ(server_.open_connections(), 0u);
  EXPECT_EQ(server_.open_watches(), 0u);
  EXPECT_NE(watch.reply().result, CURLE_OK);
  EXPECT_EQ(client_.get(kPods).code, 200) << "over a new one";
}

TEST_F(ApiServerTest, RestartsOnThePortItHad) {
  const std::string url = server_.url();
  server_.put(kWebPods, pod("a"));
  Watch watch(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched());
  server_.stop();
  EXPECT_NE(watch.reply().result, CURLE_OK);
  EXPECT_EQ(client_.get(kPods).result, CURLE_COULDNT_CONNECT);
  server_.start();
  EXPECT_EQ(server_.url(), url);
  EXPECT_THAT(names(client_.get(kPods).json()), ElementsAre("a"));
}

TEST_F(ApiServerTest, IgnoresConnections) {
  server_.ignore_new_connections(true);
  client_.timeout_ms = 50;
  EXPECT_EQ(client_.get(kPods).result, CURLE_OPERATION_TIMEDOUT);
  EXPECT_THAT(server_.requests(), IsEmpty());
  server_.ignore_new_connections(false);
  client_.timeout_ms = 20000;
  EXPECT_EQ(client_.get(kPods).code, 200);
}

TEST_F(ApiServerTest, NoticesThatTheClientOfAWatchWentAway) {
  {
    Watch watch(server_, watch_target(kPods));
    ASSERT_TRUE(is_watched());
  }
  EXPECT_TRUE(is_watched(0));
}

TEST(ApiServer, EndsAtOnceWhateverClientsDo) {
  auto server = std::make_unique<ApiServer>(ApiServer::Options{.tokens = {"secret"}});
  Watch watch(*server, kPods + "?watch=1");
  server->misbehave({.method = "GET", .action = ApiServer::Silence{}});
  Client client(*server);
  auto silent = std::async(std::launch::async, [&] { return client.get(kNodes); });
  ASSERT_TRUE(server->wait_for([&] { return server->open_watches() == 1 && server->requests("GET").size() == 1; }));
  server->ignore_new_connections(true);
  Client ignored(*server);
  auto unheard = std::async(std::launch::async, [&] { return ignored.get(kNodes); });
  ASSERT_TRUE(server->wait_for([&] { return server->open_connections() == 3; }));
  server.reset();
  EXPECT_NE(watch.reply().result, CURLE_OK);
  EXPECT_NE(silent.get().result, CURLE_OK);
  EXPECT_NE(unheard.get().result, CURLE_OK);
}

TEST_F(ApiServerTest, ServesManyAtOnce) {
  std::vector<std::future<int>> clients;
  for (int number = 0; number < 8; ++number) {
    clients.push_back(std::async(std::launch::async, [this, number] {
      Client client(server_);
      int created = 0;
      for (int i = 0; i < 20; ++i) {
        const Json made = pod("p-" + std::to_string(number) + '-' + std::to_string(i));
        created += client.send("POST", kWebPods, made).code == 201 ? 1 : 0;
      }
      return created;
    }));
  }
  Watch watch(server_, kPods + "?watch=1");
  for (auto& client : clients) EXPECT_EQ(client.get(), 20);
  EXPECT_THAT(watch.events(160), SizeIs(160));
  EXPECT_THAT(server_.history(kPods), SizeIs(160));
}

}  // namespace
}  // namespace topolet::testing
