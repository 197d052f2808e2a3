#include "core/daemon/describe_status.hpp"

#include <gtest/gtest.h>

namespace topolet::daemon {
namespace {

StatusFacts facts() {
  return {.listen = "/run/topolet.sock",
          .runtime = "/run/runtime.sock",
          .store_damage = {},
          .reload_error = {},
          .runtime_connected = true};
}

engine::EngineSummary engine() {
  engine::EngineSummary summary;
  summary.containers = {{"exclusive", 1}, {"shared", 2}, {"ignored", 0}};
  summary.reconciled = true;
  return summary;
}

TEST(DescribeStatus, SaysThatPodsCanStartAndWhatIsPlaced) {
  EXPECT_EQ(describe_status(facts(), engine()),
            "ready on unix:///run/topolet.sock; 3 containers placed (1 exclusive, 2 shared)");
}

TEST(DescribeStatus, SaysWhatPodsWaitFor) {
  StatusFacts away = facts();
  away.runtime_connected = false;
  EXPECT_EQ(describe_status(away, {}), "waiting for the runtime on unix:///run/runtime.sock; 0 containers placed");
  EXPECT_EQ(describe_status(facts(), {}),
            "comparing with the runtime on unix:///run/runtime.sock; 0 containers placed");
}

TEST(DescribeStatus, SaysWhatSomebodyShouldLookAt) {
  StatusFacts told = facts();
  told.store_damage = "page 3 is not a page";
  told.reload_error = "line 4: no such key";
  engine::EngineSummary degraded = engine();
  degraded.containers.clear();
  degraded.overlaps = {{.container = "fin/a/main", .owner = "fin/b/main", .cpus = {0}},
                       {.container = "fin/a/main", .owner = "fin/c/main", .cpus = {1}}};
  degraded.overruled.resize(1);
  degraded.stuck.resize(2);
  degraded.squeezed = 2;
  degraded.store_degraded = true;
  degraded.store_degraded_because = "the disk is full";
  EXPECT_EQ(
      describe_status(told, degraded),
      "ready on unix:///run/topolet.sock; 0 containers placed; 1 container on CPUs that others have exclusively; "
      "1 container overruled: something else sets the CPUs; 2 containers cannot be moved; "
      "2 squeezed, as CPUs are offline or must not be used; "
      "goes on without the "
      "state database: the disk is full; the state database is damaged: page 3 is not a page; the configuration was "
      "not changed: line 4: no "
      "such key");
}

}  // namespace
}  // namespace topolet::daemon
