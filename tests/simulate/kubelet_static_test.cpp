// A kubelet whose CPU manager is switched from static to none behind a running topoletd, and back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "store/database.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

class KubeletStaticTest : public ::testing::Test {
 protected:
  /// A Guaranteed container of two CPUs; `cpus`: those that the kubelet gives it.
  OperationResult create(const std::string& pod, const std::string& cpus,
                         const std::string& label = "io.kubernetes.container.name") {
    node_.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed"}})", pod));
    return node_.apply(
        fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,)"
                    R"("memory_limit":1048576,"cpuset_cpus":"{}","labels":{{"{}":"main"}}}})",
                    pod, cpus, label));
  }
  std::string told() {
    const auto database =
        store::Database::open(directory_.path() / "state" / "state.db", store::Database::Access::kReadOnly);
    return *database->text(
        "SELECT coalesce(group_concat(reason_code), '') FROM (SELECT reason_code FROM decided "
        "WHERE event = 'kubelet-static' ORDER BY decision)",
        "look");
  }

  const TempDir directory_;
  SimulatedNode node_{"numa:1 core:8 pu:1", {"--plugins.enable=numa"}, {.state_dir = directory_.path() / "state"}};
};

TEST_F(KubeletStaticTest, IsToldWhenItGoesOffAndOnAgain) {
  EXPECT_EQ(create("a", "2-3").cpus.to_string(), "2-3");
  EXPECT_EQ(create("crictl", "", "made-by").mode, "shared") << "nobody's word on the kubelet";
  EXPECT_EQ(told(), "kubelet-static-on");
  const OperationResult first = create("b", "");
  EXPECT_EQ(first.mode, "exclusive") << first.reason;
  EXPECT_EQ(told(), "kubelet-static-on,kubelet-static-off");
  for (const ContainerSnapshot& container : node_.snapshot().containers) {
    if (container.key.pod_uid != "a") continue;
    EXPECT_EQ(container.cpus.to_string(), "2-3") << "it keeps them";
    EXPECT_EQ(container.mode, "exclusive");
  }
  node_.apply(R"({"op":"restart"})");
  create("c", "");
  EXPECT_EQ(told(), "kubelet-static-on,kubelet-static-off") << "once";
  EXPECT_EQ(create("d", "6-7").cpus.to_string(), "6-7");
  EXPECT_EQ(told(), "kubelet-static-on,kubelet-static-off,kubelet-static-on");
  node_.apply(R"({"op":"restart"})");
  create("e", "4");
  EXPECT_EQ(told(), "kubelet-static-on,kubelet-static-off,kubelet-static-on");
}

TEST_F(KubeletStaticTest, IsKnownToBeOffWhereNobodyHasItsCpusAnyMore) {
  create("a", "2-3");
  node_.apply(R"({"op":"remove_pod","pod":"a"})");
  node_.apply(R"({"op":"restart"})");
  EXPECT_EQ(create("b", "").mode, "exclusive");
  EXPECT_EQ(told(), "kubelet-static-on,kubelet-static-off");
}

}  // namespace
}  // namespace topolet::simulate
