// The zone that a scheduler has chosen for a pod, where the kubelet has given it devices elsewhere.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Two nodes of four CPUs, with a GPU each.
class ZoneAndDevices : public GpuDecisions {
 protected:
  SimulatedNode node(const std::vector<std::string>& more = {}) const { return with_devices(flags(more)); }
  static SimulatedNode with_devices(std::vector<std::string> options) {
    options.emplace_back("--daemon.node-name=n1");
    SimulatedNode made("pack:2 numa:1(memory=4294967296) core:4 pu:1", options);
    made.apply(R"({"op":"device","path":"/dev/x0","kind":"gpu","nodes":"0"})");
    made.apply(R"({"op":"device","path":"/dev/x1","kind":"gpu","nodes":"1"})");
    return made;
  }
  /// `zone` and `devices` as they stand in lists.
  static OperationResult place(SimulatedNode& made, const std::string& pod, const std::string& zone,
                               const std::string& devices, int cpus = 2) {
    made.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed","annotations":{{"topolet.io/zone":)"
                           R"("{{\"v\":1,\"node\":\"n1\",\"zones\":[{}]}}"}}}})",
                           pod, zone));
    return made.apply(fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{},)"
                                  R"("cpu_limit_milli":{},"memory_limit":4096,"devices":[{}]}})",
                                  pod, cpus * 1000, cpus * 1000, devices));
  }
};

TEST_F(ZoneAndDevices, TheZoneYieldsWhateverIsSaidOfZones) {
  for (const char* zone : {"prefer", "require"}) {
    for (const char* affinity : {"prefer", "require"}) {
      SimulatedNode made = node({std::string("--numa.zone=") + zone, std::string("--gpu.affinity=") + affinity});
      const OperationResult placed = place(made, "a", "1", R"("/dev/x0")");
      EXPECT_EQ(placed.cpus.to_string(), "0-1") << zone << ' ' << affinity << ": " << placed.reason;
      EXPECT_EQ(placed.reason_code, "zone-yielded");
      EXPECT_THAT(placed.reason, HasSubstr("; outside the zone that the scheduler has chosen for it, node 1 "
                                           "(topolet.io/zone), which yields to its devices near node 0"));
    }
  }
}

TEST_F(ZoneAndDevices, TheZoneHoldsWhereTheDevicesAreNearToIt) {
  SimulatedNode made = node();
  const OperationResult placed = place(made, "a", "1", R"("/dev/x1")");
  EXPECT_EQ(placed.cpus.to_string(), "4-5") << placed.reason;
  EXPECT_EQ(placed.reason_code, "best-score");
  const OperationResult wide = place(made, "b", "0,1", R"("/dev/x0")", 1);
  EXPECT_EQ(wide.reason_code, "best-score") << wide.reason;
  EXPECT_EQ(wide.cpus.to_string(), "0");
}

TEST_F(ZoneAndDevices, TheZoneHoldsWhereNothingElseIsNearerToTheDevices) {
  SimulatedNode made = node();
  made.apply(R"({"op":"occupy","cpus":"0-3"})");
  const OperationResult full = place(made, "full", "1", R"("/dev/x0")");
  EXPECT_EQ(full.cpus.to_string(), "4-5") << full.reason;
  EXPECT_EQ(full.reason_code, "best-score");
  const OperationResult unknown = place(made, "unknown", "1", R"("/dev/nobody-knows")", 1);
  EXPECT_EQ(unknown.cpus.to_string(), "6") << unknown.reason;
  EXPECT_EQ(unknown.reason_code, "best-score");
}

TEST_F(ZoneAndDevices, OnSeveralNodesTheZoneYieldsToAllOfThem) {
  SimulatedNode made = node();
  const OperationResult placed = place(made, "a", "1", R"("/dev/x0","/dev/x1")");
  EXPECT_EQ(placed.reason_code, "zone-yielded") << placed.reason;
  EXPECT_EQ(nodes_of(made, placed).to_string(), "0-1");
}

TEST_F(ZoneAndDevices, TheZoneHoldsWhereNobodyPlacesByDevices) {
  SimulatedNode made = with_devices({"--plugins.enable=numa"});
  const OperationResult placed = place(made, "a", "1", R"("/dev/x0")");
  EXPECT_EQ(placed.cpus.to_string(), "4-5") << placed.reason;
  EXPECT_EQ(placed.reason_code, "best-score");
}

TEST_F(ZoneAndDevices, ADenialForTheZoneStaysOneWhereTheDevicesAreNoReason) {
  SimulatedNode made = node({"--numa.zone=require"});
  made.apply(R"({"op":"occupy","cpus":"4-6"})");
  const OperationResult denied = place(made, "a", "1", R"("/dev/x1")");
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(denied.reason, HasSubstr("zone = require"));
  EXPECT_THAT(denied.reason, Not(HasSubstr("yields")));
}

}  // namespace
}  // namespace topolet::simulate
