// Load: what a running topoletd measures of this machine, for whoever asks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using control::v1::LoadResponse;

class LoadTest : public ::testing::Test {
 protected:
  void start(const std::string& load) {
    rig_.configure("", "", "load = " + load);
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }
  LoadResponse ask() {
    grpc::ClientContext context;
    LoadResponse response;
    const grpc::Status asked = rig_.control().Load(&context, {}, &response);
    EXPECT_TRUE(asked.ok()) << asked.error_message();
    return response;
  }
  control::v1::LoadState state() {
    grpc::ClientContext context;
    control::v1::StatusResponse response;
    const grpc::Status asked = rig_.control().Status(&context, {}, &response);
    EXPECT_TRUE(asked.ok()) << asked.error_message();
    return response.load();
  }

  DaemonRig rig_;
};

TEST_F(LoadTest, IsMeasuredOnceSomebodyAsks) {
  start("auto");
  EXPECT_FALSE(state().is_measuring());
  EXPECT_EQ(state().sampling(), "auto");
  LoadResponse load;
  EXPECT_TRUE(DaemonRig::eventually([&] {
    load = ask();
    return load.nodes_size() > 0 && load.nodes(0).has_used_milli();
  }));
  EXPECT_GE(load.nodes(0).nominal_milli(), 1000);
  EXPECT_LE(load.nodes(0).used_milli(), load.nodes(0).nominal_milli());
  EXPECT_EQ(load.state().error(), "");
  EXPECT_TRUE(state().is_measuring());
  EXPECT_LT(state().measured_for_ms(), 60'000);
}

TEST_F(LoadTest, HasTheCapacityThatSomebodyTells) {
  start("on");
  control::v1::SetCapacityRequest request;
  request.set_milli(1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  request.set_until_ms(std::chrono::duration_cast<std::chrono::milliseconds>(now + std::chrono::hours(1)).count());
  request.set_source("steal");
  grpc::ClientContext refused;
  control::v1::SetCapacityResponse answer;
  EXPECT_EQ(rig_.control().SetCapacity(&refused, request, &answer).error_code(), grpc::StatusCode::INVALID_ARGUMENT)
      << "that is what topoletd measures itself";
  request.set_source("operator");
  grpc::ClientContext context;
  ASSERT_TRUE(rig_.control().SetCapacity(&context, request, &answer).ok());
  LoadResponse load;
  EXPECT_TRUE(DaemonRig::eventually([&] {
    load = ask();
    return load.nodes_size() > 0;
  }));
  EXPECT_EQ(load.nodes(0).effective_milli(), 1);
  EXPECT_EQ(load.nodes(0).source(), "operator");
}

TEST_F(LoadTest, IsNotMeasuredWhereTheConfigurationSaysSo) {
  start("off");
  EXPECT_EQ(ask().state().sampling(), "off");
  EXPECT_FALSE(ask().state().is_measuring());
  EXPECT_EQ(ask().nodes_size(), 0);
}

}  // namespace
}  // namespace topolet::testing
