// Who is woken when a zone has grown, and by whom.
#include "cluster/agent/kubernetes/waker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/agent/kubernetes/paths.hpp"
#include "tests/cluster_api/virtual_api.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::HasSubstr;

const std::string kLeases = "/apis/coordination.k8s.io/v1/leases";

class WakerTest : public ::testing::Test {
 protected:
  WakerTest() { api_.put(kNodes, {{"metadata", {{"name", "n1"}}}}); }
  void make_pod(const std::string& scheduler, const std::string& node = "") {
    api_.put(kPods, {{"metadata", {{"namespace", "default"}, {"name", "of-" + scheduler}}},
                     {"spec", {{"schedulerName", scheduler}, {"nodeName", node}}},
                     {"status", {{"phase", "Pending"}}}});
  }
  void renew(const std::string& holder = "extender") {
    api_.put(kLeases, {{"metadata", {{"namespace", "topolet-system"}, {"name", "topolet-extender"}}},
                       {"spec",
                        {{"holderIdentity", holder},
                         {"leaseDurationSeconds", 6},
                         {"renewTime", "renewal " + std::to_string(++renewals_)}}}});
  }
  void pass(milliseconds time) {
    const milliseconds end = time_.now() + time;
    while (time_.step(end)) {
    }
  }
  std::size_t wake_ups() const { return api_.times("PATCH", kNodes + "/n1").size(); }

  testing::VirtualTime time_;
  testing::VirtualApi api_{time_};
  const std::shared_ptr<Log> log_ = make_silent_log();
  int renewals_ = 0;
  Waker alone_{{"n1", {"topolet", "other"}, "", ""}, api_, *log_};
  Waker beside_{{"n1", {"topolet"}, "topolet-system", "topolet-extender"}, api_, *log_};
};

TEST_F(WakerTest, OnlyPodsOfSchedulersThatAskForZonesAreLookedAt) {
  make_pod("default-scheduler");
  make_pod("topolet", "elsewhere");
  alone_.zone_has_grown();
  pass(seconds(2));
  EXPECT_EQ(wake_ups(), 0U);
  make_pod("other");
  alone_.zone_has_grown();
  pass(seconds(2));
  EXPECT_EQ(wake_ups(), 1U);
  EXPECT_EQ(alone_.wake_ups(), 1U);
  std::vector<std::string> lists;
  for (const auto& request : api_.requests()) {
    if (request.method == "GET") lists.push_back(request.path);
  }
  EXPECT_THAT(lists, Each(HasSubstr("spec.schedulerName%3D")));
}

TEST_F(WakerTest, OnceASecondAndNoGrowthIsForgotten) {
  make_pod("topolet");
  for (int i = 0; i < 5; ++i) alone_.zone_has_grown();
  pass(milliseconds(500));
  EXPECT_EQ(wake_ups(), 1U);
  alone_.zone_has_grown();
  pass(milliseconds(400));
  EXPECT_EQ(wake_ups(), 1U);
  pass(milliseconds(200));
  EXPECT_EQ(wake_ups(), 2U);
}

TEST_F(WakerTest, AnExtenderThatRenewsItsLeaseWakesAlone) {
  make_pod("topolet");
  renew();
  for (int i = 0; i < 200; ++i) {
    beside_.zone_has_grown();
    renew();
    pass(seconds(1));
  }
  EXPECT_EQ(wake_ups(), 0U);
  EXPECT_TRUE(api_.times("GET", kPods).empty()) << "nobody lists pods";
  EXPECT_LE(api_.times("GET", "/apis/coordination.k8s.io").size(), 10U);
}

TEST_F(WakerTest, ADeadExtenderDoesNotKeepPodsWaiting) {
  make_pod("topolet");
  renew();
  beside_.zone_has_grown();
  pass(seconds(14));
  EXPECT_EQ(wake_ups(), 0U) << "it may be alive";
  pass(seconds(2));
  EXPECT_EQ(wake_ups(), 1U);
  beside_.zone_has_grown();
  pass(seconds(1));
  EXPECT_EQ(wake_ups(), 2U) << "it is known by now";
  renew();
  beside_.zone_has_grown();
  pass(seconds(1));
  EXPECT_EQ(wake_ups(), 2U) << "it is back";
  // And dies: what has grown while it was believed to be alive is not forgotten.
  beside_.zone_has_grown();
  pass(seconds(60));
  EXPECT_EQ(wake_ups(), 3U);
}

TEST_F(WakerTest, WithoutALeaseOrAHolderOrTheRightToReadItTheAgentWakes) {
  make_pod("topolet");
  beside_.zone_has_grown();
  pass(seconds(2));
  EXPECT_EQ(wake_ups(), 1U);
  renew("");
  beside_.zone_has_grown();
  pass(seconds(2));
  EXPECT_EQ(wake_ups(), 2U);
  renew();
  api_.refuse("GET", 403, 1);
  beside_.zone_has_grown();
  pass(seconds(2));
  EXPECT_EQ(wake_ups(), 3U);
}

}  // namespace
}  // namespace topolet::agent
