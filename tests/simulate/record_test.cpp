// Whatever happens to whichever machine: the decisions of its record, made again, are those that were made.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/plugin/host/loaded_config.hpp"
#include "core/simulate/simulation.hpp"
#include "tests/simulate/recorded_run.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kTwoNodes = "pack:2 numa:1 core:4 pu:2";

std::vector<json> lines_with(const std::string& record, const std::string& op) {
  std::vector<json> lines;
  std::istringstream in(record);
  std::string line;
  while (std::getline(in, line)) {
    if (json parsed = json::parse(line); parsed["op"] == op) lines.push_back(std::move(parsed));
  }
  return lines;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

/// Two containers are placed, and one is resized and ends.
void play_a_little(SimulatedNode& node) {
  node.guaranteed("db", 2);
  node.burstable("web", 500);
  node.apply(R"({"op":"update","pod":"web","container":"main","cpu_request_milli":1500,"cpu_limit_milli":1500})");
  node.apply(R"({"op":"capacity","node":0,"milli":4000,"for_s":60})");
  node.apply(R"({"op":"stop","pod":"db","container":"main"})");
  node.apply(R"({"op":"remove_pod","pod":"db"})");
}

TEST(Record, HasTheDecisionsThatAreMadeAgain) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=numa", "--plugins.enable=smt"}, run.options());
    play_a_little(node);
  }
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "");
  EXPECT_GE(result.decisions, 2U);
  EXPECT_EQ(result.begins, 1U);
}

TEST(Record, TellsTheOperationsInTheWordsOfAWorkload) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"}, run.options());
    play_a_little(node);
  }
  const std::string record = run.text();
  const std::vector<json> creates = lines_with(record, "create");
  ASSERT_EQ(creates.size(), 2U);
  EXPECT_EQ(creates[0]["pod"], "db");
  EXPECT_EQ(creates[0]["cpu_request_milli"], 2000);
  EXPECT_EQ(lines_with(record, "run_pod").size(), 2U);
  EXPECT_EQ(lines_with(record, "outcome").at(0)["outcome"], "bound");
  EXPECT_EQ(lines_with(record, "update").at(0)["cpu_request_milli"], 1500);
  EXPECT_EQ(lines_with(record, "capacity").at(0)["for_s"], 60);
  EXPECT_EQ(lines_with(record, "stop").at(0)["pod"], "db");
  EXPECT_EQ(lines_with(record, "remove_pod").at(0)["pod"], "db");
}

TEST(Record, TellsADeniedResizeFromADeniedCreate) {
  for (const SimulatedFront front : {SimulatedFront::kCri, SimulatedFront::kNri}) {
    const RecordedRun run;
    {
      SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"}, run.options({.front = front}));
      node.guaranteed("db", 2);
      node.apply(R"({"op":"update","pod":"db","container":"main","cpu_request_milli":99000,"cpu_limit_milli":99000})");
      node.guaranteed("big", 99);
    }
    const std::vector<json> updates = lines_with(run.text(), "update");
    ASSERT_EQ(updates.size(), 1U);
    EXPECT_EQ(updates[0]["pod"], "db");
    EXPECT_EQ(updates[0]["cpu_request_milli"], 99000);
    EXPECT_EQ(lines_with(run.text(), "create").size(), 2U);
    const std::vector<json> outcomes = lines_with(run.text(), "outcome");
    ASSERT_EQ(outcomes.size(), 3U);
    EXPECT_EQ(outcomes[1]["pod"], "db");
    EXPECT_EQ(outcomes[1]["outcome"], "denied");
    EXPECT_EQ(outcomes[2]["pod"], "big");
    EXPECT_EQ(outcomes[2]["outcome"], "denied");
    EXPECT_EQ(first_difference(run.replay()), "");
  }
}

TEST(Record, HasTheLoadThatDecisionsAreShown) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=numa", "--numa.shared-home=soft"}, run.options());
    node.burstable("a", 1000);
    node.burstable("b", 1000);
    node.apply(R"({"op":"load","pod":"a","container":"main","cpu_milli":64000,"psi_some_permille":300})");
    node.apply(R"({"op":"load","pod":"b","container":"main","cpu_milli":10})");
    node.apply(R"({"op":"load","node":1,"effective_milli":3000})");
    const OperationResult widened = node.apply(R"({"op":"clock","advance_s":15})");
    ASSERT_EQ(widened.changed.size(), 1U);
    node.apply(R"({"op":"load","pod":"b","container":"main","known":false})");
    node.burstable("c", 1000);
  }
  const std::vector<json> measured = lines_with(run.text(), "measured");
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[0]["containers"].size(), 2U);
  EXPECT_EQ(measured[0]["nodes"]["1"]["effective_milli"], 3000);
  EXPECT_EQ(measured[1]["containers"].size(), 1U) << "what is not known any more";
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "");
  EXPECT_GE(result.decisions, 4U) << "it was asked whether the home is soft";
}

TEST(Record, HasTheLoadThatTicksAreShown) {
  const RecordedRun run;
  {
    SimulatedNode node("node:2(memory=64GB) core:4 pu:1", {"--plugins.enable=numa", "--plugins.enable=load"},
                       run.options());
    node.burstable("a", 100);
    node.burstable("b", 100);
    for (const std::string pod : {"a", "b"})
      node.apply(fmt::format(R"({{"op":"load","pod":"{}","container":"main","cpu_milli":1950}})", pod));
    for (int i = 0; i < 14; ++i) node.apply(R"({"op":"clock","advance_s":5})");
  }
  const std::string record = run.text();
  EXPECT_GE(lines_with(record, "measured").size(), 1U);
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "");
  EXPECT_GE(result.ticks, 10U);
}

TEST(Record, NamesThePolicyThatAnswersOtherwise) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=smt", "--plugins.enable=numa"}, run.options());
    node.guaranteed("db", 2);
    node.guaranteed("web", 2);
  }
  const replay::ReplayResult result = run.replay({.overrides = {{"numa", "strategy", "spread"}}});
  ASSERT_TRUE(result.first.has_value());
  EXPECT_EQ(result.first->policy, "numa");
  EXPECT_EQ(result.first->container, "default/web/main");
  EXPECT_EQ(lines_with(run.text(), "decide").at(1)["pod"], "web");
  EXPECT_THAT(result.first->what, HasSubstr("policy numa answers otherwise: of nodes 0 it said "));
  EXPECT_THAT(result.first->what, HasSubstr("it was exclusive on CPUs 2-3, and is exclusive on CPUs 8-9 now"));
  EXPECT_EQ(result.different, 1U);
}

TEST(Record, IsAWorkloadOfTheCommand) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=smt", "--plugins.enable=numa"}, run.options());
    node.guaranteed("db", 2);
    node.guaranteed("web", 2);
  }
  const auto simulate = [&](std::vector<std::string> words) {
    const TempDir directory;
    words.insert(words.begin(), {TOPOLET_COMMAND, "simulate", "--workload", run.file().string()});
    const int status = testing::Process(words, directory.file("out")).wait();
    return std::pair(status, directory.read("out"));
  };
  const auto [same, told] = simulate({});
  EXPECT_EQ(same, 0) << told;
  EXPECT_THAT(told, HasSubstr("2 decisions made again, and all as before; "));
  const auto [other, first] = simulate({"--numa.strategy=spread"});
  EXPECT_EQ(other, 1);
  EXPECT_THAT(first, HasSubstr("1 not as before; "));
  EXPECT_THAT(first, HasSubstr("default/web/main: policy numa answers otherwise: "));
  EXPECT_EQ(json::parse(simulate({"--json", "--numa.strategy=spread"}).second)["first"]["policy"], "numa");
  const auto [refused, why] = simulate({"--topology", kTwoNodes});
  EXPECT_EQ(refused, 2);
  EXPECT_THAT(why, HasSubstr("it cannot be run with --topology"));
}

TEST(Record, SaysWhereNoPolicyDiffersButTheCpus) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"}, run.options());
    node.guaranteed("db", 2);
  }
  run.write(replaced(run.text(), R"({"mode":"exclusive","cpus":"0-1"},"nodes")",
                     R"({"mode":"exclusive","cpus":"0,2"},"nodes")"));
  const replay::ReplayResult result = run.replay();
  ASSERT_TRUE(result.first.has_value());
  EXPECT_EQ(result.first->policy, "");
  EXPECT_EQ(result.first->what,
            "no policy answers otherwise; it was exclusive on CPUs 0,2, and is exclusive on CPUs 0-1 now");
}

/// Whose plugins are those of tests that misbehave.
std::unique_ptr<Simulation> misbehaving(const RecordedRun& run, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"--config", "/dev/null", "--daemon.plugin-dir=" TOPOLET_BROKEN_DIR});
  auto made = Simulation::make({.synthetic = kTwoNodes}, plugin::load_config(config::read_raw(flags)), run.options());
  if (!made) throw std::logic_error(made.error().message);
  return *std::move(made);
}

void place(Simulation& simulation, const std::string& pod) {
  const std::string run_pod = fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed"}})", pod);
  const std::string create =
      fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_limit_milli":1000,"memory_limit":4096}})", pod);
  simulation.apply(*parse_operation(run_pod));
  simulation.apply(*parse_operation(create));
}

TEST(Record, HasALatePluginBeLateAgain) {
  const RecordedRun run;
  {
    // It works on until it is told that it is late.
    const auto simulation = misbehaving(run, {"--plugins.enable=nonsense", "--nonsense.answer=none-in-time",
                                              "--placement.deadline-ms=1", "--placement.decision-ms=600000"});
    for (const char* pod : {"a", "b", "c", "d", "e"}) place(*simulation, pod);
  }
  const json lost = lines_with(run.text(), "decide").at(0)["answers"][0]["lost"][0];
  EXPECT_EQ(lost["call"], "score");
  EXPECT_EQ(lost["code"], static_cast<int>(Code::kDeadlineExceeded));
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "") << "it has time now, and is not asked";
  EXPECT_EQ(result.lost_votes, 5U);
  EXPECT_EQ(result.decisions, 5U);
}

TEST(Record, HasAPluginThatFailedFailAgain) {
  const RecordedRun run;
  {
    const auto simulation = misbehaving(run, {"--plugins.enable=throws", "--placement.deadline-ms=60000"});
    for (const char* pod : {"a", "b", "c", "d", "e"}) place(*simulation, pod);
  }
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "") << "its quarantine included";
  EXPECT_EQ(result.lost_votes, 5U);
}

TEST(Record, HasNoSecretOfAContainer) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=numa", "--plugins.enable=gpu"}, run.options());
    node.apply(R"({"op":"run_pod","pod":"db","annotations":{"vendor/token":"hush","topolet.io/cpus":"shared"}})");
    node.apply(R"({"op":"create","pod":"db","container":"main","cpu_request_milli":500,)"
               R"("env":{"PASSWORD":"hush"},"annotations":{"vendor/other":"hush"}})");
    node.apply(R"({"op":"stop","pod":"db","container":"main"})");
  }
  const std::string record = run.text();
  EXPECT_THAT(record, Not(HasSubstr("hush")));
  EXPECT_THAT(record, Not(HasSubstr("PASSWORD")));
  EXPECT_THAT(record, Not(HasSubstr("vendor/")));
  EXPECT_THAT(record, HasSubstr("topolet.io/cpus"));
}

TEST(Record, HasTheVariablesThatADeviceKindReads) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=gpu", "--gpu.devices=fpga: env=FPGA_* pci=node:1"}, run.options());
    node.apply(R"({"op":"run_pod","pod":"db"})");
    node.apply(R"({"op":"create","pod":"db","container":"main","cpu_request_milli":500,)"
               R"("env":{"PASSWORD":"hush","FPGA_CARD":"0"}})");
  }
  EXPECT_EQ(lines_with(run.text(), "decide").at(0)["workload"]["env"], json::parse(R"([["FPGA_CARD","0"]])"));
  EXPECT_EQ(lines_with(run.text(), "create").at(0)["env"], json::parse(R"(["FPGA_CARD=0"])"));
  EXPECT_THAT(run.text(), Not(HasSubstr("hush")));
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "");
  EXPECT_GT(result.decisions, 0U);
}

TEST(Record, StandsAloneWhereTheFileBeforeWasFull) {
  const RecordedRun run(60000);
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"}, run.options());
    for (int i = 0; i < 40; ++i) node.burstable(fmt::format("p{}", i), 50);
  }
  EXPECT_TRUE(std::filesystem::exists(run.file().string() + ".1"));
  EXPECT_FALSE(std::filesystem::exists(run.file().string() + ".2"));
  EXPECT_LT(std::filesystem::file_size(run.file().string() + ".1"), 80000U);
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "");
  EXPECT_GT(result.decisions, 0U);
  EXPECT_LT(result.decisions, 40U);
}

TEST(Record, BeginsAnewWithTheDaemon) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"}, run.options());
    node.guaranteed("db", 2);
    node.apply(R"({"op":"restart"})");
    node.guaranteed("web", 2);
  }
  // It was killed while it wrote.
  run.write(run.text() + R"({"op":"decide","po)");
  {
    SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"}, run.options());
    node.guaranteed("db", 2);
  }
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "");
  EXPECT_EQ(result.begins, 3U);
  EXPECT_EQ(result.torn_lines, 1U);
  EXPECT_GE(result.decisions, 3U);
}

TEST(Record, IsOfNoUseToAnotherVersion) {
  const RecordedRun run;
  { SimulatedNode node(kTwoNodes, {}, run.options()); }
  run.write(replaced(run.text(), R"("version":2)", R"("version":1)"));
  const auto result = run.try_to_replay();
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("line 1: it is a record of version 1"));
}

}  // namespace
}  // namespace topolet::simulate
