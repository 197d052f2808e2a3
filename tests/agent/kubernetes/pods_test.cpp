// Pods as the API server tells them, and what they will still ask of a node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cluster/agent/kubernetes/bound_pods.hpp"
#include "cluster/agent/kubernetes/pending.hpp"
#include "cluster/api/quantity.hpp"

namespace topolet::agent {
namespace {

using api::page_size_text;
using api::parse_milli;
using api::parse_units;
using api::read_pod;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kGi = std::int64_t{1} << 30U;

TEST(Quantity, IsReadInThousandthsAndUnitsRoundedUp) {
  EXPECT_EQ(parse_milli("2"), 2000);
  EXPECT_EQ(parse_milli("1500m"), 1500);
  EXPECT_EQ(parse_milli("0.1"), 100);
  EXPECT_EQ(parse_milli("1.5"), 1500);
  EXPECT_EQ(parse_milli(".5"), 500);
  EXPECT_EQ(parse_milli("100u"), 1);
  EXPECT_EQ(parse_milli("1500000001n"), 1501);
  EXPECT_EQ(parse_milli("1e3"), 1000000);
  EXPECT_EQ(parse_milli("5e-1"), 500);
  EXPECT_EQ(parse_milli("0"), 0);
  EXPECT_EQ(parse_units("1Gi"), kGi);
  EXPECT_EQ(parse_units("1.5Gi"), kGi * 3 / 2);
  EXPECT_EQ(parse_units("2G"), 2'000'000'000);
  EXPECT_EQ(parse_units("128974848"), 128974848);
  EXPECT_EQ(parse_units("129e6"), 129'000'000);
  EXPECT_EQ(parse_units("123Mi"), 123 << 20);
  EXPECT_EQ(parse_units("7Ei"), 7 * (std::int64_t{1} << 60U));
  EXPECT_EQ(parse_units("100m"), 1);
  EXPECT_EQ(parse_units("0.0000000001Ki"), 1);
  EXPECT_EQ(parse_units("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_units("1000Ei"), std::numeric_limits<std::int64_t>::max());
  for (const char* wrong : {"", "Gi", "1x", "-1", "1.2.3", "1 Gi", "1e", "e3", "1e99", "."})
    EXPECT_EQ(parse_milli(wrong), std::nullopt) << wrong;
}

TEST(Quantity, NamesSizesOfPages) {
  EXPECT_EQ(page_size_text(2 << 20), "2Mi");
  EXPECT_EQ(page_size_text(kGi), "1Gi");
  EXPECT_EQ(page_size_text(64 << 10), "64Ki");
}

/// The values that the scheduler plugin's own library gives.
TEST(Fingerprint, IsThatOfTheSchedulers) {
  EXPECT_EQ(pods_fingerprint({}), "pfp0v001ef46db3751d8e999");
  EXPECT_EQ(pods_fingerprint({{"default", "web"}, {"default", "batch"}, {"kube-system", "coredns-1"}}),
            "pfp0v0014184069233b7a454");
  EXPECT_EQ(pods_fingerprint({{"kube-system", "coredns-1"}, {"default", "web"}, {"default", "batch"}}),
            "pfp0v0014184069233b7a454");
}

json container(const std::string& name, const std::string& cpu, const std::string& memory = "1Gi",
               const std::string& restart_policy = "") {
  json made = {{"name", name},
               {"resources",
                {{"requests", {{"cpu", cpu}, {"memory", memory}}}, {"limits", {{"cpu", cpu}, {"memory", memory}}}}}};
  if (!restart_policy.empty()) made["restartPolicy"] = restart_policy;
  return made;
}

json pod(const std::string& name, const json& containers, const json& init_containers = json::array()) {
  return {{"metadata",
           {{"name", name},
            {"namespace", "default"},
            {"uid", "uid-" + name},
            {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
          {"spec", {{"nodeName", "n1"}, {"containers", containers}, {"initContainers", init_containers}}},
          {"status", {{"phase", "Pending"}, {"qosClass", "Guaranteed"}}}};
}

/// "NAME CPUS-in-thousandths MEMORY-in-GiB".
std::vector<std::string> pending(const json& object, const BookedContainers& booked = {}) {
  std::vector<std::string> texts;
  for (const auto& message : pending_containers(read_pod(object), booked)) {
    texts.push_back(message.name() + ' ' + std::to_string(message.cpu_request_milli()) + ' ' +
                    std::to_string(message.memory_request_bytes() / kGi));
    EXPECT_EQ(message.qos(), "guaranteed");
    EXPECT_EQ(message.cpu_limit_milli(), message.cpu_request_milli());
  }
  return texts;
}

BookedContainers booked(const std::string& pod_uid, const std::map<std::string, int>& cpus, int gibibytes = 1) {
  BookedContainers all;
  for (const auto& [name, count] : cpus)
    all[pod_uid][name].amounts = {.cpu_milli = count * 1000, .memory_bytes = gibibytes * kGi};
  return all;
}

TEST(PendingContainers, AreThoseThatTopoletdDoesNotHave) {
  const json two = pod("two", {container("a", "2"), container("b", "1")});
  EXPECT_THAT(pending(two), ElementsAre("a 2000 1", "b 1000 1"));
  EXPECT_THAT(pending(two, booked("uid-two", {{"a", 2}})), ElementsAre("b 1000 1"));
  EXPECT_THAT(pending(two, booked("uid-two", {{"a", 2}, {"b", 1}})), IsEmpty());
  EXPECT_THAT(pending(two, booked("uid-other", {{"a", 2}})), ElementsAre("a 2000 1", "b 1000 1"));
}

TEST(PendingContainers, CountThoseThatRunWhereTopoletdDoesNotKnowThemYet) {
  json running = pod("p", json::array({container("a", "2")}));
  running["status"]["phase"] = "Running";
  running["status"]["containerStatuses"] = {{{"name", "a"}, {"state", {{"running", json::object()}}}}};
  EXPECT_THAT(pending(running), ElementsAre("a 2000 1"));
}

TEST(PendingContainers, OfPodsThatHaveEndedAreNone) {
  json ended = pod("p", json::array({container("a", "2")}));
  for (const char* phase : {"Succeeded", "Failed"}) {
    ended["status"]["phase"] = phase;
    EXPECT_THAT(pending(ended), IsEmpty());
  }
  ended["status"]["phase"] = "Running";
  ended["status"]["containerStatuses"] = {{{"name", "a"}, {"state", {{"terminated", {{"exitCode", 1}}}}}}};
  ended["spec"]["restartPolicy"] = "Always";
  EXPECT_THAT(pending(ended), ElementsAre("a 2000 1")) << "it is started again";
  ended["spec"]["restartPolicy"] = "OnFailure";
  EXPECT_THAT(pending(ended), ElementsAre("a 2000 1"));
  ended["spec"]["restartPolicy"] = "Never";
  EXPECT_THAT(pending(ended), IsEmpty());
}

TEST(PendingContainers, OfAStaticPodAreFoundUnderItsOwnUid) {
  json mirror = pod("static", json::array({container("a", "2")}));
  mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "0123";
  EXPECT_THAT(pending(mirror, booked("0123", {{"a", 2}})), IsEmpty());
  EXPECT_EQ(pending_containers(read_pod(mirror), {}).at(0).pod_uid(), "0123");
  EXPECT_EQ(pending_containers(read_pod(mirror), {}).at(0).device_nodes(), "");
  const std::string name = pending_containers(read_pod(mirror), {}).at(0).name();
  EXPECT_EQ(pending_containers(read_pod(mirror), {}, {{name, {0, 1, 3}}}).at(0).device_nodes(), "0-1,3");
}

/// "NAME: INIT CONTAINERS BEFORE IT".
std::vector<std::string> order(const json& object, const BookedContainers& booked = {}) {
  std::vector<std::string> texts;
  for (const auto& message : pending_containers(read_pod(object), booked)) {
    std::string text = message.name() + ":";
    for (const std::string& before : message.after()) text += ' ' + before;
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(PendingContainers, AreWholeWhateverInitContainersHold) {
  const json large_init = pod("p", json::array({container("a", "2")}), json::array({container("i", "5")}));
  EXPECT_THAT(pending(large_init), ElementsAre("i 5000 1", "a 2000 1"));
  EXPECT_THAT(pending(large_init, booked("uid-p", {{"i", 5}})), ElementsAre("a 2000 1"));
  EXPECT_THAT(order(large_init, booked("uid-p", {{"i", 5}})), ElementsAre("a: i"));
  json after = large_init;
  after["status"]["initContainerStatuses"] = {{{"name", "i"}, {"state", {{"terminated", {{"exitCode", 0}}}}}}};
  EXPECT_THAT(order(after), ElementsAre("a:"));
  EXPECT_THAT(order(after, booked("uid-p", {{"i", 5}})), ElementsAre("a: i")) << "the ledger has yet to hear of it";
  json again = large_init;
  again["status"]["initContainerStatuses"] = {{{"name", "i"}, {"state", {{"terminated", {{"exitCode", 1}}}}}}};
  EXPECT_THAT(order(again), ElementsAre("i:", "a: i")) << "it is started again";
}

TEST(PendingContainers, ComeAfterTheInitContainersThatAreBeforeThem) {
  const json sidecar = pod("p", json::array({container("a", "2"), container("b", "1")}),
                           {container("i", "3"), container("s", "1", "1Gi", "Always"), container("j", "3")});
  EXPECT_THAT(order(sidecar), ElementsAre("i:", "s: i", "j: i", "a: i j", "b: i j"));
  EXPECT_THAT(order(sidecar, booked("uid-p", {{"s", 1}})), ElementsAre("j:", "a: j", "b: j"))
      << "i has ended, or s would not be there";
  EXPECT_THAT(order(sidecar, booked("uid-p", {{"s", 1}, {"j", 3}})), ElementsAre("a: j", "b: j"));
  EXPECT_THAT(order(sidecar, booked("uid-p", {{"s", 1}, {"a", 2}})), ElementsAre("b:"));
  BookedContainers failed = booked("uid-p", {{"a", 2}});
  failed["uid-p"]["a"].has_failed = true;
  EXPECT_THAT(order(sidecar, failed), ElementsAre("i:", "s: i", "j: i", "b: i j")) << "the pod may begin anew";
}

TEST(PendingContainers, CreditNoContainerWithWhatAnotherHas) {
  json ended = pod("p", json::array({container("a", "2"), container("b", "2")}));
  ended["spec"]["restartPolicy"] = "Never";
  ended["status"]["containerStatuses"] = {{{"name", "a"}, {"state", {{"terminated", {{"exitCode", 1}}}}}}};
  EXPECT_THAT(pending(ended, booked("uid-p", {{"a", 2}})), ElementsAre("b 2000 1"));
  EXPECT_THAT(pending(pod("p", json::array({container("a", "2")})), booked("uid-p", {{"debugger", 2}})),
              ElementsAre("a 2000 1"));
}

TEST(PendingContainers, OfAPodAsAWholeAreWhatItsContainersDoNotRequest) {
  json whole = pod("p", json::array({container("a", "2")}), json::array({container("i", "3")}));
  whole["spec"]["resources"]["requests"] = {{"cpu", "8"}, {"memory", "4Gi"}};
  whole["metadata"]["annotations"] = {{"topolet.io/cpus", "exclusive"}};
  for (const BookedContainers& held : {BookedContainers(), booked("uid-p", {{"i", 3}}), booked("uid-p", {{"a", 2}})}) {
    const auto rest = pending_containers(read_pod(whole), held).back();
    EXPECT_EQ(rest.name(), "(pod)");
    EXPECT_EQ(rest.qos(), "burstable");
    EXPECT_EQ(rest.cpu_request_milli(), 5000);
    EXPECT_EQ(rest.memory_request_bytes(), 3 * kGi);
    EXPECT_EQ(rest.annotations_size(), 0);
  }
}

TEST(PendingContainers, OfAPodAsAWholeAreNotWhatIsBookedForOneOfItsContainersAlready) {
  json whole = pod("p", json::array({container("a", "2"), {{"name", "b"}}}));
  whole["spec"]["resources"]["requests"] = {{"cpu", "6"}, {"memory", "4Gi"}};
  watch::v1::Snapshot node;
  watch::v1::Container& b = *node.add_containers();
  b.mutable_key()->set_pod_uid("uid-p");
  b.mutable_key()->set_name("b");
  b.set_cpu_request_milli(4000);
  b.set_memory_request_bytes(3 * kGi);
  b.set_cpu_request_certainty("pod");
  EXPECT_THAT(pending(whole, booked_containers(node)), ElementsAre("a 2000 1"));
}

TEST(PendingContainers, TellWhatTheirPodRequests) {
  json two =
      pod("p", json::array({container("a", "2"), container("b", "100m")}), json::array({container("i", "3", "4Gi")}));
  two["status"]["initContainerStatuses"] = {{{"name", "i"}, {"state", {{"terminated", {{"exitCode", 0}}}}}}};
  for (const auto& message : pending_containers(read_pod(two), {})) {
    EXPECT_EQ(message.pod_cpu_request_milli(), 3000) << "also when the init container has ended";
    EXPECT_EQ(message.pod_memory_bytes(), 4 * kGi);
  }
  two["spec"]["resources"]["requests"] = {{"cpu", "8"}};
  EXPECT_EQ(pending_containers(read_pod(two), {}).front().pod_cpu_request_milli(), 8000);
  two["status"]["qosClass"] = "Burstable";
  two["spec"]["containers"][0]["resources"]["limits"]["memory"] = "8Gi";
  EXPECT_EQ(pending_containers(read_pod(two), {}).front().pod_memory_bytes(), 9 * kGi) << "the limits";
}

TEST(PendingContainers, EndAsTheirOwnRestartPoliciesSay) {
  json made = pod("p", json::array({container("a", "2")}), json::array({container("s", "1", "1Gi", "Always")}));
  made["spec"]["restartPolicy"] = "Never";
  const json failed = {{"terminated", {{"exitCode", 1}}}};
  made["status"]["initContainerStatuses"] = {{{"name", "s"}, {"state", failed}}};
  made["status"]["containerStatuses"] = {{{"name", "a"}, {"state", failed}}};
  EXPECT_THAT(pending(made), ElementsAre("s 1000 1"));
  made["spec"]["containers"][0]["restartPolicy"] = "OnFailure";
  EXPECT_THAT(pending(made), ElementsAre("s 1000 1", "a 2000 1"));
  made["spec"]["containers"][0]["restartPolicy"] = "Never";
  made["spec"]["containers"][0]["restartPolicyRules"] = {{{"action", "Restart"}}};
  EXPECT_THAT(pending(made), ElementsAre("s 1000 1", "a 2000 1"));
}

TEST(PendingContainers, CountAResizeUntilItIsBooked) {
  json grown = pod("p", json::array({container("a", "4", "3Gi")}));
  grown["status"]["phase"] = "Running";
  grown["status"]["containerStatuses"] = {{{"name", "a"}, {"allocatedResources", {{"cpu", "2"}, {"memory", "1Gi"}}}}};
  EXPECT_THAT(pending(grown, booked("uid-p", {{"a", 2}})), ElementsAre("(growth of a) 2000 2"));
  EXPECT_THAT(pending(grown, booked("uid-p", {{"a", 4}}, 3)), IsEmpty());
  json infeasible = grown;
  infeasible["status"]["conditions"] = {{{"type", "PodResizePending"}, {"reason", "Infeasible"}}};
  EXPECT_THAT(pending(infeasible, booked("uid-p", {{"a", 2}})), IsEmpty());
  json shrunk = pod("p", json::array({container("a", "1")}));
  shrunk["status"]["containerStatuses"] = {{{"name", "a"}, {"allocatedResources", {{"cpu", "2"}, {"memory", "1Gi"}}}}};
  EXPECT_THAT(pending(shrunk, booked("uid-p", {{"a", 2}})), IsEmpty());
  EXPECT_THAT(pending(shrunk), ElementsAre("a 2000 1")) << "until the kubelet has done it";
}

/// Each as "NAME grows CONTAINER after CONTAINERS: CPUS, MEMORY".
std::vector<std::string> growths(const json& object, const BookedContainers& booked) {
  std::vector<std::string> texts;
  for (const auto& message : pending_containers(read_pod(object), booked)) {
    std::string text = message.name() + " grows " + message.grows();
    for (const std::string& before : message.after()) text += " after " + before;
    texts.push_back(text + ": " + std::to_string(message.cpu_request_milli()) + ", " +
                    std::to_string(message.memory_request_bytes() / kGi));
  }
  return texts;
}

TEST(PendingContainers, NameTheContainerThatGrows) {
  const json two = pod("p", json::array({container("a", "4"), container("b", "2", "3Gi")}),
                       json::array({container("s", "3", "1Gi", "Always")}));
  EXPECT_THAT(
      growths(two, booked("uid-p", {{"s", 1}, {"a", 2}, {"b", 2}})),
      ElementsAre("(growth of s) grows s: 2000, 0", "(growth of a) grows a: 2000, 0", "(growth of b) grows b: 0, 2"));
}

TEST(PendingContainers, OfAnInitContainerGrowBeforeWhatComesAfterIt) {
  const json init = pod("p", json::array({container("a", "4")}), json::array({container("i", "3")}));
  EXPECT_THAT(growths(init, booked("uid-p", {{"i", 1}})),
              ElementsAre("(growth of i) grows i: 2000, 0", "a grows  after i after (growth of i): 4000, 1"));
  EXPECT_THAT(growths(init, booked("uid-p", {{"i", 1}, {"a", 4}})), IsEmpty()) << "it has ended";
}

TEST(PendingContainers, AreWholeWhereAResizeCreatesThemAnew) {
  json made = pod("p", json::array({container("a", "4", "3Gi")}));
  json& policies = made["spec"]["containers"][0]["resizePolicy"];
  policies = {{{"resourceName", "cpu"}, {"restartPolicy", "RestartContainer"}},
              {{"resourceName", "memory"}, {"restartPolicy", "NotRequired"}}};
  EXPECT_THAT(growths(made, booked("uid-p", {{"a", 2}}, 3)), ElementsAre("(again a) grows a after a: 4000, 3"));
  EXPECT_THAT(growths(made, booked("uid-p", {{"a", 4}})), ElementsAre("(growth of a) grows a: 0, 2"));
  policies = json();
  BookedContainers failed = booked("uid-p", {{"a", 2}}, 3);
  failed["uid-p"]["a"].has_failed = true;
  EXPECT_THAT(growths(made, failed), ElementsAre("(again a) grows a after a: 4000, 3"));
}

TEST(PendingContainers, OfBurstablePodsGrowInMemoryAsTheKubeletTells) {
  json made = pod("p", json::array({container("a", "1", "3Gi")}));
  made["status"]["qosClass"] = "Burstable";
  made["spec"]["containers"][0]["resources"]["limits"]["memory"] = "6Gi";
  BookedContainers held = booked("uid-p", {{"a", 1}});
  held["uid-p"]["a"].memory_limit_bytes = 6 * kGi;
  EXPECT_THAT(growths(made, held), IsEmpty()) << "what is known of its request is an estimate";
  made["status"]["containerStatuses"] = {
      {{"name", "a"}, {"resources", {{"requests", {{"cpu", "1"}, {"memory", "1Gi"}}}}}}};
  EXPECT_THAT(growths(made, held), ElementsAre("(growth of a) grows a: 0, 2"));
  made["status"]["containerStatuses"][0]["resources"]["requests"]["memory"] = "3Gi";
  EXPECT_THAT(growths(made, held), IsEmpty());
  held["uid-p"]["a"].memory_limit_bytes = 4 * kGi;
  const auto limits = pending_containers(read_pod(made), held);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_EQ(limits[0].memory_limit_bytes(), 2 * kGi);
  EXPECT_EQ(limits[0].memory_request_bytes(), 0);
}

TEST(PendingContainers, BringAnnotationsHugePagesAndShares) {
  json burstable = pod("p", {{{"name", "a"},
                              {"resources",
                               {{"requests", {{"cpu", "100m"}, {"hugepages-2Mi", "4Mi"}}},
                                {"limits", {{"cpu", "1"}, {"hugepages-2Mi", "4Mi"}}}}}}});
  burstable["status"]["qosClass"] = "Burstable";
  burstable["metadata"]["annotations"] = {{"topolet.io/numa-policy", "restricted"},
                                          {"kubectl.kubernetes.io/last-applied-configuration", "{}"}};
  const auto containers = pending_containers(read_pod(burstable), {});
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_EQ(containers[0].qos(), "burstable");
  EXPECT_EQ(containers[0].cpu_request_milli(), 100);
  EXPECT_EQ(containers[0].cpu_limit_milli(), 1000);
  EXPECT_EQ(containers[0].hugepage_limit_bytes().at("2MB"), 4 << 20);
  EXPECT_EQ(containers[0].annotations_size(), 1);
  // The runtime is told shares: 102 of 1024 are less than 100 thousandths.
  BookedContainers as_shares;
  as_shares["uid-p"]["a"].amounts = {.cpu_milli = 99, .memory_bytes = 0, .huge_page_bytes = {{"2Mi", 4 << 20}}};
  EXPECT_THAT(pending_containers(read_pod(burstable), as_shares), IsEmpty());
}

TEST(BoundPods, FingerprintThoseThatAreNotPendingAndAcknowledgeThoseThatHaveNotEnded) {
  BoundPods pods;
  json web = pod("web", json::array());
  web["metadata"]["uid"] = "aaaaaaaa-bbbb";
  json batch = pod("batch", json::array());
  batch["metadata"]["uid"] = "11111111-2222";
  pods.begin({web, batch});
  EXPECT_EQ(pods.fingerprint(), pods_fingerprint({}));
  EXPECT_EQ(pods.acknowledged(), "11111111,aaaaaaaa");
  web["status"]["phase"] = "Running";
  batch["status"]["phase"] = "Failed";
  pods.apply("MODIFIED", web);
  pods.apply("MODIFIED", batch);
  EXPECT_EQ(pods.fingerprint(), pods_fingerprint({{"default", "web"}, {"default", "batch"}}));
  EXPECT_EQ(pods.acknowledged(), "aaaaaaaa");
  pods.apply("DELETED", batch);
  EXPECT_EQ(pods.fingerprint(), pods_fingerprint({{"default", "web"}}));
  pods.begin({});
  EXPECT_EQ(pods.size(), 0U);
}

}  // namespace
}  // namespace topolet::agent
