// What the engine says of each decision: why it is made, and what the container has or had. It is in the record, from
// which the decision is made again.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/placement/policy.hpp"
#include "tests/simulate/recorded_run.hpp"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using placement::Occasion;

struct Asked {
  Occasion occasion = Occasion::kCreate;
  std::string had, withheld, mems, keep;
  std::uint32_t min_shared_cpus = 0;
};

/// What was asked about a container, in order.
std::vector<Asked> asked_about(const std::string& record, const std::string& pod) {
  std::vector<Asked> all;
  std::istringstream in(record);
  std::string line;
  while (std::getline(in, line)) {
    const nlohmann::json parsed = nlohmann::json::parse(line);
    if (parsed["op"] != "decide" || parsed["pod"] != pod) continue;
    const nlohmann::json& request = parsed["request"];
    const nlohmann::json had = request.value("had", nlohmann::json::object());
    all.push_back({.occasion = static_cast<Occasion>(request.value("occasion", 0)),
                   .had = had.value("cpus", ""),
                   .withheld = had.value("withheld", ""),
                   .mems = had.value("mems", ""),
                   .keep = request.value("keep", ""),
                   .min_shared_cpus = request.value("min_shared_cpus", 0U)});
  }
  return all;
}

class OccasionTest : public ::testing::Test {
 protected:
  /// Plays on a machine with two nodes, and returns what was asked about the pod last.
  template <class Play>
  Asked last_asked(const std::string& pod, std::vector<std::string> flags, Play play) {
    flags.insert(flags.begin(), {"--plugins.enable=numa", "--plugins.enable=smt"});
    const RecordedRun run;
    {
      SimulatedNode node("pack:2 numa:1(memory=16GB) core:4 pu:2", flags, run.options());
      play(node);
    }
    EXPECT_EQ(first_difference(run.replay()), "") << "what was asked is in the record";
    const std::vector<Asked> asked = asked_about(run.text(), pod);
    EXPECT_FALSE(asked.empty());
    return asked.empty() ? Asked() : asked.back();
  }
};

TEST_F(OccasionTest, NothingWasBeforeACreate) {
  const Asked asked = last_asked("db", {"--placement.min-shared-cpus=3"}, [](auto& node) { node.guaranteed("db", 2); });
  EXPECT_EQ(asked.occasion, Occasion::kCreate);
  EXPECT_EQ(asked.had + asked.withheld + asked.mems + asked.keep, "");
  EXPECT_EQ(asked.min_shared_cpus, 3U);
}

TEST_F(OccasionTest, TheNextAttemptHadCpus) {
  const Asked asked = last_asked("db", {"--smt.isolate-siblings=exclusive"}, [](auto& node) {
    node.guaranteed("db", 3);
    node.apply(R"({"op":"exit","pod":"db","container":"main","exit_code":1})");
    node.apply(R"({"op":"create","pod":"db","container":"main","attempt":1,"cpu_request_milli":3000,)"
               R"("cpu_limit_milli":3000})");
  });
  EXPECT_EQ(asked.occasion, Occasion::kRestart);
  EXPECT_EQ(asked.had, "0-2");
  EXPECT_EQ(asked.withheld, "3");
}

TEST_F(OccasionTest, AResizeOfCpusHasAndKeepsSome) {
  const Asked asked = last_asked("db", {"--numa.memory=bind"}, [](auto& node) {
    node.apply(R"({"op":"run_pod","pod":"db","qos":"guaranteed"})");
    node.apply(R"({"op":"create","pod":"db","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,)"
               R"("memory_request":1000000,"memory_limit":1000000})");
    node.apply(R"({"op":"update","pod":"db","container":"main","cpu_request_milli":4000,"cpu_limit_milli":4000})");
  });
  EXPECT_EQ(asked.occasion, Occasion::kResize);
  EXPECT_EQ(asked.had, "0-1");
  EXPECT_EQ(asked.mems, "0");
  EXPECT_EQ(asked.keep, "0-1");
}

TEST_F(OccasionTest, AResizeOfMemoryAloneIsOneToo) {
  const Asked asked = last_asked("db", {"--numa.memory=bind"}, [](auto& node) {
    node.apply(R"({"op":"run_pod","pod":"db","qos":"burstable"})");
    node.apply(R"({"op":"create","pod":"db","container":"main","cpu_request_milli":500,"memory_request":1000000,)"
               R"("memory_limit":1000000})");
    node.apply(R"({"op":"update","pod":"db","container":"main","memory_request":2000000,"memory_limit":2000000})");
  });
  EXPECT_EQ(asked.occasion, Occasion::kResize);
  EXPECT_EQ(asked.had, asked.keep);
  EXPECT_NE(asked.had, "");
}

TEST_F(OccasionTest, WhoLosesItsCpusIsRepairedAndMovesBack) {
  const auto lose = [](auto& node) {
    node.guaranteed("db", 2);
    node.apply(R"({"op":"offline","cpus":"0-7"})");
  };
  const Asked repaired = last_asked("db", {}, lose);
  EXPECT_EQ(repaired.occasion, Occasion::kRepair);
  EXPECT_EQ(repaired.had, "0-1");
  const Asked moved = last_asked("db", {}, [&](auto& node) {
    lose(node);
    node.apply(R"({"op":"online","cpus":"0-7"})");
    node.apply(R"({"op":"clock","advance_s":60})");
  });
  EXPECT_EQ(moved.occasion, Occasion::kMove);
  EXPECT_EQ(moved.keep, "0-1") << "it was given them before";
  EXPECT_EQ(moved.had, "0-1,8-9") << "with what it has now";
}

TEST_F(OccasionTest, WhoWouldBeLeftWithoutCpusIsRepaired) {
  const Asked asked = last_asked("web", {}, [](auto& node) {
    node.guaranteed("db", 4);
    node.burstable("web", 500);
    node.guaranteed("big", 8);
  });
  EXPECT_EQ(asked.occasion, Occasion::kRepair);
  EXPECT_NE(asked.had, "");
}

TEST_F(OccasionTest, WhoIsFoundIsAdopted) {
  const Asked asked = last_asked("web", {}, [](auto& node) {
    node.burstable("web", 500);
    node.apply(R"({"op":"restart","database":"lost"})");
    node.apply(R"({"op":"clock","advance_s":60})");
  });
  EXPECT_EQ(asked.occasion, Occasion::kAdopt);
  EXPECT_NE(asked.had, "");
}

}  // namespace
}  // namespace topolet::simulate
