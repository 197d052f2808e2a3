// The operations of recorded days, played through both front ends: topoletd decides alike, whoever tells it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/simulate/recorded_run.hpp"
#include "tests/simulate/restart_history.hpp"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

#ifdef TOPOLET_SANITIZED
constexpr std::uint64_t kDays = 2;
#else
constexpr std::uint64_t kDays = 10;
#endif
constexpr int kStepsOfADay = 60;
constexpr const char* kTwoNodes = "pack:2 numa:1 core:4 pu:2";

bool is_operation(const json& line) {
  static const std::set<std::string> kOperations = {"run_pod", "create", "start",     "update",
                                                    "exit",    "stop",   "remove_pod"};
  return kOperations.count(line["op"]) != 0;
}

/// A create that has come to nothing in the runtime came to nothing for another reason than topoletd.
bool has_failed(const json& outcome) {
  return outcome["outcome"] == "refused" || outcome["outcome"] == "in_doubt" || outcome["outcome"] == "timed_out";
}

void remove_create(const json& outcome, std::vector<json>& operations) {
  const auto create = std::find_if(operations.rbegin(), operations.rend(), [&](const json& line) {
    return line["op"] == "create" && line["pod"] == outcome["pod"] && line["container"] == outcome["container"];
  });
  if (create != operations.rend()) operations.erase(std::next(create).base());
}

/// The operations of a record as lines for a simulation, with the time between them.
std::vector<std::string> lines_of_day(const std::string& record) {
  std::vector<json> operations;
  std::istringstream in(record);
  for (std::string text; std::getline(in, text);) {
    json line = json::parse(text);
    if (line["op"] == "outcome" && has_failed(line)) remove_create(line, operations);
    if (is_operation(line)) operations.push_back(std::move(line));
  }
  std::vector<std::string> lines;
  std::int64_t now_s = operations.empty() ? 0 : operations.front()["at"].get<std::int64_t>() / 1000;
  for (json& line : operations) {
    const std::int64_t at_s = line["at"].get<std::int64_t>() / 1000;
    if (at_s > now_s) lines.push_back(fmt::format(R"({{"op":"clock","advance_s":{}}})", at_s - now_s));
    now_s = at_s;
    line.erase("at");
    line.erase("cause");
    if (line["op"] == "create") line["start"] = false;
    lines.push_back(line.dump());
  }
  return lines;
}

std::vector<std::string> recorded_day(const RestartNode& node, std::uint64_t seed) {
  const RecordedRun recorded;
  run_history(node, make_history(node, seed, kStepsOfADay), recorded.options());
  return lines_of_day(recorded.text());
}

/// NRI does not tell that a container was stopped by the kubelet: with an exit code it looks as if it had failed.
std::string phase_of(const ContainerSnapshot& container) {
  return container.phase == "crashed" ? "kept" : container.phase;
}

/// Who has what, a line each. An attempt is not told to both front ends.
std::string held(SimulatedNode& node) {
  std::vector<std::string> lines;
  for (const ContainerSnapshot& container : node.snapshot().containers) {
    lines.push_back(fmt::format("{}/{} {} on {} withheld {} memory {}, {}", container.key.pod_uid, container.key.name,
                                container.mode, container.cpus.to_string(), container.withheld.to_string(),
                                container.mems.to_string(), phase_of(container)));
  }
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string told(const OperationResult& result) {
  return fmt::format("{} ({}): {}", result.outcome, result.reason_code, result.reason);
}

struct Differences {
  std::size_t lines = 0;
  std::string first;  ///< for people; empty if there is none
};

Differences play(const RestartNode& machine, const std::vector<std::string>& day) {
  SimulatedNode cri(machine.machine, machine.flags);
  SimulatedNode nri(machine.machine, machine.flags, {.front = SimulatedFront::kNri});
  Differences differences;
  for (const std::string& line : day) {
    const OperationResult by_cri = cri.apply(line);
    const OperationResult by_nri = nri.apply(line);
    ++differences.lines;
    if (held(cri) == held(nri) && told(by_cri) == told(by_nri)) continue;
    differences.first = fmt::format("after {}: {}\n{}\n{}\nover NRI: {}\n{}", differences.lines, line, told(by_cri),
                                    held(cri), told(by_nri), held(nri));
    return differences;
  }
  return differences;
}

TEST(BothFronts, DecideARecordedDayAlike) {
  const std::vector<RestartNode> nodes = {
      {"numa:1 core:6 pu:1", {"--plugins.enable=numa"}},
      {"pack:2 numa:1 core:2 pu:2", {"--plugins.enable=numa", "--numa.memory=bind"}},
      {kTwoNodes, {"--plugins.enable=numa", "--plugins.enable=smt", "--smt.isolate-siblings=exclusive"}}};
  std::size_t lines = 0;
  for (const RestartNode& node : nodes) {
    for (std::uint64_t seed = 1; seed <= kDays; ++seed) {
      const std::vector<std::string> day = recorded_day(node, seed);
      const Differences differences = play(node, day);
      ASSERT_EQ(differences.first, "") << node.machine << " seed " << seed << "\n"
                                       << fmt::format("{}", fmt::join(day, "\n"));
      lines += differences.lines;
    }
  }
  EXPECT_GT(lines, 50 * kDays) << "a day has operations";
}

TEST(BothFronts, SayAlikeWhyADenialIsRepeated) {
  const std::string create = R"({"op":"create","pod":"db","container":"main","cpu_request_milli":99000,)"
                             R"("cpu_limit_milli":99000,"memory_request":4096,"memory_limit":4096})";
  for (const SimulatedFront front : {SimulatedFront::kCri, SimulatedFront::kNri}) {
    SimulatedNode node(kTwoNodes, {}, {.front = front});
    node.apply(R"({"op":"run_pod","pod":"db","qos":"guaranteed"})");
    const OperationResult first = node.apply(create);
    EXPECT_EQ(first.reason_code, "too-few-free-cpus");
    EXPECT_EQ(told(node.apply(create)), told(first));
  }
}

TEST(BothFronts, DifferWhereOnlyTheContainerItselfIsAnnotated) {
  const std::string create = R"({"op":"create","pod":"db","container":"main","cpu_request_milli":2000,)"
                             R"("cpu_limit_milli":2000,"memory_request":4096,"memory_limit":4096,)"
                             R"("annotations":{"topolet.io/cpus":"shared"}})";
  SimulatedNode cri(kTwoNodes);
  SimulatedNode nri(kTwoNodes, {}, {.front = SimulatedFront::kNri});
  for (SimulatedNode* node : {&cri, &nri}) node->apply(R"({"op":"run_pod","pod":"db"})");
  EXPECT_EQ(cri.apply(create).mode, "shared");
  EXPECT_EQ(nri.apply(create).mode, "exclusive") << "NRI tells no annotations of containers";
}

}  // namespace
}  // namespace topolet::simulate
