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
    all[pod_uid][name] = {.cpu_milli = count * 1000, .memory_bytes = gibibytes * kGi};
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
}

TEST(PendingContainers, CountInitContainersAndSidecarsAsTheSchedulerDoes) {
  const json large_init = pod("p", json::array({container("a", "2")}), json::array({container("i", "5")}));
  EXPECT_THAT(pending(large_init), ElementsAre("a 2000 1", "(rest) 3000 0"));
  EXPECT_THAT(pending(large_init, booked("uid-p", {{"i", 5}})), IsEmpty())
      << "the init container has what the others will need";
  EXPECT_THAT(pending(large_init, booked("uid-p", {{"a", 2}})), ElementsAre("(rest) 3000 0"));
  json after = large_init;
  after["status"]["initContainerStatuses"] = {{{"name", "i"}, {"state", {{"terminated", {{"exitCode", 0}}}}}}};
  EXPECT_THAT(pending(after), ElementsAre("a 2000 1"));

  const json small_init = pod("p", json::array({container("a", "2")}), json::array({container("i", "1")}));
  EXPECT_THAT(pending(small_init), ElementsAre("a 2000 1"));
  const json sidecar =
      pod("p", json::array({container("a", "2")}), {container("s", "1", "1Gi", "Always"), container("i", "3")});
  EXPECT_THAT(pending(sidecar), ElementsAre("s 1000 1", "a 2000 1", "(rest) 1000 0")) << "3 + 1 while i runs";
}

TEST(PendingContainers, CountAResizeUntilItIsBooked) {
  json grown = pod("p", json::array({container("a", "4", "3Gi")}));
  grown["status"]["phase"] = "Running";
  grown["status"]["containerStatuses"] = {{{"name", "a"}, {"allocatedResources", {{"cpu", "2"}, {"memory", "1Gi"}}}}};
  EXPECT_THAT(pending(grown, booked("uid-p", {{"a", 2}})), ElementsAre("(rest) 2000 2"));
  EXPECT_THAT(pending(grown, booked("uid-p", {{"a", 4}}, 3)), IsEmpty());
  json infeasible = grown;
  infeasible["status"]["conditions"] = {{{"type", "PodResizePending"}, {"reason", "Infeasible"}}};
  EXPECT_THAT(pending(infeasible, booked("uid-p", {{"a", 2}})), IsEmpty());
  json shrunk = pod("p", json::array({container("a", "1")}));
  shrunk["status"]["containerStatuses"] = {{{"name", "a"}, {"allocatedResources", {{"cpu", "2"}, {"memory", "1Gi"}}}}};
  EXPECT_THAT(pending(shrunk, booked("uid-p", {{"a", 2}})), IsEmpty());
  EXPECT_THAT(pending(shrunk), ElementsAre("a 2000 1")) << "until the kubelet has done it";
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
  as_shares["uid-p"]["a"] = {.cpu_milli = 99, .memory_bytes = 0, .huge_page_bytes = {{"2Mi", 4 << 20}}};
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
