// smt.pair = measured in the engine: containers are created anew, and by then it is known what their kind uses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/simulate/recorded_run.hpp"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

/// One node of four cores of two threads, and pods of Deployments: "web" of pods "web-h-1", "web-h-2", …
class MeasuredPairs {
 public:
  explicit MeasuredPairs(const SimulationOptions& options = {})
      : node_("numa:1 core:4 pu:2", {"--plugins.enable=numa", "--plugins.enable=smt", "--smt.pair=measured"}, options) {
  }

  OperationResult run(const std::string& deployment, int number) {
    const std::string pod = fmt::format("{}-h-{}", deployment, number);
    apply(fmt::format(
        R"({{"op":"run_pod","pod":"{0}","name":"{0}","qos":"guaranteed","labels":{{"pod-template-hash":"h"}}}})", pod));
    return apply(fmt::format(
        R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":1000,"cpu_limit_milli":1000,"memory_limit":4096}})",
        pod));
  }
  void end(const std::string& pod) {
    apply(fmt::format(R"({{"op":"stop","pod":"{}","container":"main"}})", pod));
    apply(fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", pod));
  }
  void use(const std::string& pod, int milli) {
    apply(fmt::format(R"({{"op":"load","pod":"{}","container":"main","cpu_milli":{}}})", pod, milli));
  }
  void let_pass(int seconds) { apply(fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds)); }
  SimulatedNode& node() { return node_; }

 private:
  OperationResult apply(const std::string& line) {
    OperationResult result = node_.apply(line);
    EXPECT_NE(result.outcome, "error") << line << ": " << result.reason;
    return result;
  }

  SimulatedNode node_;
};

void play(MeasuredPairs& pairs) {
  EXPECT_THAT(pairs.run("busy", 1).reason, HasSubstr("nothing is known of what default/busy/main uses"));
  pairs.run("idle", 1);
  pairs.use("busy-h-1", 950);
  pairs.use("idle-h-1", 30);
  pairs.let_pass(3600);
  pairs.end("idle-h-1");
  pairs.end("busy-h-1");
  const OperationResult busy = pairs.run("busy", 2);
  EXPECT_THAT(busy.reason, HasSubstr("it counts as heavy: default/busy/main uses up to 0.95 of its CPUs"));
  EXPECT_EQ(busy.cpus.to_string(), "0");
  const OperationResult idle = pairs.run("idle", 2);
  EXPECT_THAT(idle.reason, HasSubstr("it counts as light: default/idle/main uses up to 0.03 of its CPUs"));
  EXPECT_EQ(idle.cpus.to_string(), "1") << "beside the heavy one";
}

TEST(SmtMeasuredSimulated, PairsContainersByWhatTheirKindUsed) {
  MeasuredPairs pairs;
  play(pairs);
}

TEST(SmtMeasuredSimulated, MovesNobodyWhenTheLoadChanges) {
  MeasuredPairs pairs;
  play(pairs);
  pairs.use("busy-h-2", 10);
  pairs.use("idle-h-2", 1000);
  pairs.let_pass(6 * 3600);
  std::vector<std::string> cpus;
  for (const RunningContainer& one : pairs.node().runtime().running()) cpus.push_back(one.cpus.to_string());
  EXPECT_THAT(cpus, ::testing::UnorderedElementsAre("0", "1"));
}

TEST(LoadLines, TellAllThatASamplerMeasures) {
  const RecordedRun run;
  {
    SimulatedNode node("numa:1 core:4 pu:2", {"--plugins.enable=smt", "--smt.pair=measured"}, run.options());
    node.burstable("a", 500);
    for (const char* line :
         {R"({"op":"load","measured_for_s":61})", R"({"op":"load","cpu":3,"used_milli":450,"effective_milli":900})",
          R"({"op":"load","node":0,"used_milli":2500,"effective_milli":7900})",
          R"({"op":"load","pod":"a","container":"main","cpu_milli":70,"psi_some_permille":1,"throttled":true,)"
          R"("memory_bytes":1048576,"memory_psi_permille":4,"io_psi_permille":5})"}) {
      EXPECT_EQ(node.apply(line).outcome, "ok") << line;
    }
    EXPECT_THAT(node.apply(R"({"op":"load","cpu":99,"used_milli":1})").reason, HasSubstr("the machine has no CPU 99"));
    node.burstable("b", 500);
  }
  const std::string record = run.text();
  for (const char* part :
       {R"("measured_for_ms":61000)", R"("used_milli":450)", R"("effective_milli":900)", R"("used_milli":2500)",
        R"("is_throttled":true)", R"("memory_bytes":1048576)", R"("memory_psi_permille":4)", R"("io_psi_permille":5)"})
    EXPECT_THAT(record, HasSubstr(part));
}

TEST(SmtMeasuredSimulated, IsDecidedAgainFromItsRecord) {
  const RecordedRun run;
  {
    MeasuredPairs pairs(run.options());
    play(pairs);
  }
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "");
  EXPECT_GE(result.decisions, 4U);
  EXPECT_GE(result.ticks, 10U);
}

}  // namespace
}  // namespace topolet::simulate
