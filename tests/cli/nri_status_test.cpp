// What `topolet status` says of the runtime's NRI, over which others set CPUs of containers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/made_up_status.hpp"

namespace topolet::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// Of a topoletd whose guard asks containerd.
control::v1::StatusResponse registered() {
  control::v1::StatusResponse status;
  control::v1::NriGuard& guard = *status.mutable_nri_guard();
  guard.set_is_registered(true);
  guard.set_is_asked(true);
  guard.set_runtime("containerd v2.4.2");
  guard.set_nri_version("v0.12.3");
  return status;
}

TEST(NriStatus, SaysNothingWithoutTheGuard) {
  EXPECT_THAT(said_of_status({}), Not(HasSubstr("NRI")));
  EXPECT_EQ(json::parse(said_of_status({}, {"--json"}))["nri_guard"], nullptr);
}

TEST(NriStatus, SaysThatTheRuntimeTellsWhoSetsCpus) {
  EXPECT_THAT(said_of_status(registered()),
              HasSubstr("\nNRI          guard warn: containerd v2.4.2 with NRI v0.12.3 tells which plugin sets CPUs, "
                        "before a container is created\n"));
  EXPECT_EQ(json::parse(said_of_status(registered(), {"--json"}))["nri_guard"]["asked"], true);
}

TEST(NriStatus, SaysThatARuntimeAsksNoPlugin) {
  control::v1::StatusResponse status = registered();
  status.mutable_nri_guard()->set_is_asked(false);
  status.mutable_nri_guard()->clear_nri_version();
  status.mutable_nri_guard()->set_refuses(true);
  EXPECT_THAT(
      said_of_status(status),
      HasSubstr("NRI          guard deny: containerd v2.4.2 with NRI of a version that it does not tell asks no "
                "plugin about others; CPUs that others set are found in the kernel, without a name\n"));
}

TEST(NriStatus, SaysWhyItIsNotConnected) {
  control::v1::StatusResponse status;
  status.mutable_nri_guard()->set_why_not("there is no socket");
  EXPECT_THAT(said_of_status(status),
              HasSubstr("NRI          guard warn, not connected: there is no socket; CPUs that others set are found in "
                        "the kernel, without a name\n"));
}

}  // namespace
}  // namespace topolet::testing
