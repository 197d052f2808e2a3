// SetCapacity: what a running topoletd takes, refuses, and still knows after it was killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <limits>

#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using control::v1::SetCapacityRequest;
using control::v1::SetCapacityResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class CapacityTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.start()) << rig_.log(); }

  static std::int64_t in(std::chrono::milliseconds time) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now + time).count();
  }
  /// Node 0 has CPUs on every machine.
  static SetCapacityRequest asking(std::int64_t milli, std::chrono::milliseconds lasts = std::chrono::hours(1)) {
    SetCapacityRequest request;
    request.set_milli(milli);
    request.set_until_ms(in(lasts));
    request.set_source("operator");
    return request;
  }
  grpc::Status set(const SetCapacityRequest& request) {
    grpc::ClientContext context;
    answer_.Clear();
    return rig_.control().SetCapacity(&context, request, &answer_);
  }
  control::v1::StatusResponse status() {
    grpc::ClientContext context;
    control::v1::StatusResponse response;
    const grpc::Status asked = rig_.control().Status(&context, {}, &response);
    EXPECT_TRUE(asked.ok()) << asked.error_message();
    return response;
  }

  DaemonRig rig_;
  SetCapacityResponse answer_;
};

TEST_F(CapacityTest, IsKnownAfterAKillAndAuditedOnce) {
  const SetCapacityRequest request = asking(1);
  ASSERT_TRUE(set(request).ok());
  EXPECT_EQ(answer_.milli(), 1);
  EXPECT_GE(answer_.nominal_milli(), 1000);
  EXPECT_FALSE(answer_.was_told());
  const control::v1::StatusResponse before = status();
  ASSERT_THAT(before.capacities(), SizeIs(1));
  rig_.process().signal(SIGKILL);
  rig_.wait_for_end();
  ASSERT_TRUE(rig_.start()) << rig_.log();
  const control::v1::StatusResponse after = status();
  ASSERT_THAT(after.capacities(), SizeIs(1));
  EXPECT_EQ(after.capacities(0).SerializeAsString(), before.capacities(0).SerializeAsString());
  EXPECT_EQ(after.capacities(0).until_ms(), request.until_ms());
  EXPECT_EQ(after.capacities(0).source(), "operator");
  EXPECT_GT(after.capacities(0).below_since_ms(), 0);
  EXPECT_THAT(rig_.query("SELECT reason FROM decided WHERE event = 'capacity'"),
              ElementsAre(HasSubstr("node 0: 1 of ")));
}

TEST_F(CapacityTest, ExpiresByItself) {
  ASSERT_TRUE(set(asking(1, std::chrono::milliseconds(1500))).ok());
  EXPECT_TRUE(rig_.eventually([this] { return status().capacities().empty(); }));
  EXPECT_EQ(rig_.stop(), 0);
  EXPECT_THAT(rig_.query("SELECT reason FROM decided WHERE event = 'capacity' ORDER BY decision"),
              ElementsAre(HasSubstr("told by operator"), HasSubstr("has expired")));
}

TEST_F(CapacityTest, IsClearedAndCutToWhatTheNodeHas) {
  ASSERT_TRUE(set(asking(1'000'000'000)).ok());
  EXPECT_EQ(answer_.milli(), answer_.nominal_milli());
  SetCapacityRequest clear;
  clear.set_source("nrt");
  ASSERT_TRUE(set(clear).ok());
  EXPECT_TRUE(answer_.was_told());
  EXPECT_TRUE(status().capacities().empty());
  ASSERT_TRUE(set(clear).ok());
  EXPECT_FALSE(answer_.was_told());
}

TEST_F(CapacityTest, RefusesWhatCannotBeAndSaysWhy) {
  const auto refused = [this](const SetCapacityRequest& request, grpc::StatusCode code, const std::string& why) {
    const grpc::Status status = set(request);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(why));
  };
  SetCapacityRequest elsewhere = asking(1);
  elsewhere.set_node(4711);
  refused(elsewhere, grpc::NOT_FOUND, "there is no NUMA node 4711; `topolet nodes` lists them");
  refused(asking(-1), grpc::INVALID_ARGUMENT, "NUMA node 0 cannot be -1 milli-CPUs");
  refused(asking(1, std::chrono::milliseconds(-1)), grpc::INVALID_ARGUMENT, "must end in the future");
  refused(asking(1, std::chrono::hours(24 * 32)), grpc::INVALID_ARGUMENT, "for more than 31 days");
  SetCapacityRequest absurd = asking(1);
  absurd.set_until_ms(std::numeric_limits<std::int64_t>::max());
  refused(absurd, grpc::INVALID_ARGUMENT, "for more than 31 days");
  absurd.set_until_ms(std::numeric_limits<std::int64_t>::min());
  refused(absurd, grpc::INVALID_ARGUMENT, "must end in the future");
  for (const std::string& source : {std::string(), std::string(65, 'x'), std::string("a\nb")}) {
    SetCapacityRequest strange = asking(1);
    strange.set_source(source);
    refused(strange, grpc::INVALID_ARGUMENT, "the source of a capacity must be 1 to 64 printable");
  }
  EXPECT_TRUE(status().capacities().empty());
}

}  // namespace
}  // namespace topolet::testing
