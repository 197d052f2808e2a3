// The CFS quotas that the runtime is told, with placement.exclusive-quota = drop.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/cri/messages/lens.pb.h"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

constexpr const char* kEightCores = "pack:1 numa:1 core:8 pu:1";

class ExclusiveQuota : public ::testing::Test {
 protected:
  void start(const std::string& rule, const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags{"--placement.exclusive-quota=" + rule};
    flags.insert(flags.end(), more.begin(), more.end());
    node_.emplace(kEightCores, flags);
  }
  OperationResult resize(const std::string& pod, int request_milli, int limit_milli) {
    return node_->apply(
        fmt::format(R"({{"op":"update","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{}}})",
                    pod, request_milli, limit_milli));
  }

  template <class Answer>
  Answer ask(const std::string& method, const std::string& request) {
    Answer answer;
    answer.ParseFromString(node_->runtime().answer(method, request, Caller::kKubelet).body);
    return answer;
  }
  /// As the runtime has it; 0: none was ever told.
  std::int64_t quota_of(const std::string& container = "main") {
    const auto list = ask<lens::ListContainersResponse>("ListContainers", "");
    for (const auto& listed : list.containers()) {
      if (listed.metadata().name() != container) continue;
      lens::ContainerStatusRequest request;
      request.set_container_id(listed.id());
      request.set_verbose(true);
      const auto status = ask<lens::ContainerStatusResponse>("ContainerStatus", request.SerializeAsString());
      const auto info = nlohmann::json::parse(std::string(status.info(0).value()));
      return info["runtimeSpec"]["linux"]["resources"]["cpu"].value("quota", std::int64_t{0});
    }
    return 0;
  }

  std::optional<SimulatedNode> node_;
};

TEST_F(ExclusiveQuota, StaysAsTheKubeletSetsItByDefault) {
  node_.emplace(kEightCores);
  node_->guaranteed("a", 2);
  EXPECT_EQ(quota_of(), 200000);
  resize("a", 3000, 3000);
  EXPECT_EQ(quota_of(), 300000);
}

TEST_F(ExclusiveQuota, IsDroppedWithTheCreateAndStaysSoThroughResizes) {
  start("drop");
  EXPECT_EQ(node_->guaranteed("a", 2).mode, "exclusive");
  EXPECT_EQ(quota_of(), -1);
  EXPECT_EQ(resize("a", 3000, 3000).cpus.size(), 3U);
  EXPECT_EQ(quota_of(), -1);
  node_->apply(R"({"op":"update","pod":"a","container":"main","memory_limit":1073741824})");
  EXPECT_EQ(quota_of(), -1);
}

TEST_F(ExclusiveQuota, IsThatOfTheResizeThatEndsItsExclusiveCpus) {
  start("drop");
  node_->guaranteed("a", 2);
  EXPECT_EQ(resize("a", 1500, 1500).mode, "shared");
  EXPECT_EQ(quota_of(), 150000);
  resize("a", 1700, 1700);
  EXPECT_EQ(quota_of(), 170000);
}

TEST_F(ExclusiveQuota, ComesBackWhereThereIsNoOtherRoomThanItsOwnCpus) {
  start("drop", {"--placement.min-shared-cpus=0"});
  node_->guaranteed("a", 8);
  EXPECT_EQ(quota_of(), -1);
  EXPECT_EQ(resize("a", 7500, 7500).mode, "shared");
  EXPECT_EQ(quota_of(), 750000);
}

TEST_F(ExclusiveQuota, ComesBackWhenItsCpusGoOffline) {
  start("drop");
  node_->guaranteed("a", 2);
  node_->apply(R"({"op":"offline","cpus":"0-6"})");
  EXPECT_EQ(quota_of(), 200000) << "it shares the one that is left";
  node_->apply(R"({"op":"online","cpus":"0-6"})");
  node_->apply(R"({"op":"clock","advance_s":5})");
  EXPECT_EQ(quota_of(), -1) << "it has its own again";
}

TEST_F(ExclusiveQuota, IsNobodysWhoSharesOrHasNoLimit) {
  start("drop");
  node_->apply(R"({"op":"run_pod","pod":"s","qos":"burstable"})");
  node_->apply(R"({"op":"create","pod":"s","container":"main","cpu_request_milli":500,"cpu_limit_milli":2000})");
  EXPECT_EQ(quota_of(), 200000);
  node_->apply(R"({"op":"run_pod","pod":"x","qos":"burstable","annotations":{"topolet.io/cpus":"exclusive"}})");
  node_->apply(R"({"op":"create","pod":"x","container":"free","cpu_request_milli":2000})");
  EXPECT_EQ(quota_of("free"), 0) << "the kubelet tells none";
}

TEST_F(ExclusiveQuota, StaysDroppedAcrossARestart) {
  start("drop");
  node_->guaranteed("a", 2);
  node_->apply(R"({"op":"restart"})");
  EXPECT_EQ(quota_of(), -1);
  resize("a", 1500, 1500);
  EXPECT_EQ(quota_of(), 150000);
}

/// Its limit is known from its request then, as it is Guaranteed.
TEST_F(ExclusiveQuota, CanComeBackThoughTheDatabaseIsLost) {
  start("drop");
  node_->guaranteed("a", 2);
  node_->apply(R"({"op":"restart","database":"lost"})");
  EXPECT_EQ(quota_of(), -1);
  node_->apply(R"({"op":"offline","cpus":"0-6"})");
  EXPECT_EQ(quota_of(), 200000);
}

TEST_F(ExclusiveQuota, IsToldAgainAfterAResizeWhoseAnswerWasLost) {
  start("drop");
  node_->guaranteed("a", 2);
  node_->apply(R"({"op":"restart","at":"after-answer","calls":1})");
  resize("a", 3000, 3000);
  node_->apply(R"({"op":"clock","advance_s":5})");
  EXPECT_EQ(quota_of(), -1);
}

}  // namespace
}  // namespace topolet::simulate
