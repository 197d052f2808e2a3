// Which devices bound pods will still be given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cluster/agent/kubernetes/publisher.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

TEST(PendingDevices, AreThoseThatEachContainerWasNotGivenYet) {
  const auto with_gpus = [](const std::string& name, int count) {
    return json{{"name", name}, {"resources", {{"requests", {{"vendor.com/gpu", std::to_string(count)}}}}}};
  };
  json object = {{"metadata", {{"namespace", "default"}, {"name", "p"}, {"uid", "u"}}},
                 {"spec",
                  {{"initContainers", json::array({with_gpus("init", 3)})},
                   {"containers", {with_gpus("a", 1), with_gpus("b", 1)}}}},
                 {"status", {{"phase", "Pending"}}}};
  DeviceInventory::State devices;
  BoundPods pods;
  pods.begin({object});
  EXPECT_THAT(pending_devices(pods, devices), ElementsAre(std::pair("vendor.com/gpu", 3)));
  object["status"]["initContainerStatuses"] = {{{"name", "init"}, {"state", {{"terminated", {{"exitCode", 0}}}}}}};
  pods.begin({object});
  devices.given[{"default", "p"}]["a"]["vendor.com/gpu"] = 1;
  EXPECT_THAT(pending_devices(pods, devices), ElementsAre(std::pair("vendor.com/gpu", 1)));
  object["spec"]["restartPolicy"] = "Never";
  object["status"]["containerStatuses"] = {{{"name", "a"}, {"state", {{"terminated", {{"exitCode", 0}}}}}}};
  pods.begin({object});
  EXPECT_THAT(pending_devices(pods, devices), ElementsAre(std::pair("vendor.com/gpu", 1)))
      << "what a had stays its own";
}

TEST(PendingDevices, OfOneInitContainerAreReusedByTheNext) {
  const auto with_gpus = [](const std::string& name, int count) {
    return json{{"name", name}, {"resources", {{"requests", {{"vendor.com/gpu", std::to_string(count)}}}}}};
  };
  const json object = {{"metadata", {{"namespace", "default"}, {"name", "p"}, {"uid", "u"}}},
                       {"spec",
                        {{"initContainers", {with_gpus("fetch", 2), with_gpus("warm", 2)}},
                         {"containers", {with_gpus("a", 1), with_gpus("b", 2)}}}},
                       {"status", {{"phase", "Pending"}}}};
  DeviceInventory::State devices;
  BoundPods pods;
  pods.begin({object});
  auto& given = devices.given[{"default", "p"}];
  given["fetch"]["vendor.com/gpu"] = given["warm"]["vendor.com/gpu"] = 2;
  EXPECT_THAT(pending_devices(pods, devices), ElementsAre(std::pair("vendor.com/gpu", 1)))
      << "the two have the same two";
  given["a"]["vendor.com/gpu"] = 1;
  EXPECT_THAT(pending_devices(pods, devices), ElementsAre(std::pair("vendor.com/gpu", 1)))
      << "of the two, one is left for the last container";
}

}  // namespace
}  // namespace topolet::agent
