// Which CPUs the kubelet's static CPU manager would hand out, exactly.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

constexpr char kVectors[] = TOPOLET_TEST_DATA "/vectors/kubelet-cpu-assignment.jsonl";

std::vector<std::string> flags_of(const nlohmann::json& options) {
  std::vector<std::string> flags = {"--plugins.enable=numa", "--numa.policy=none", "--placement.min-shared-cpus=0"};
  for (const auto& [name, value] : options.items()) {
    if (name == "cpu-group-size") continue;  // follows from full-pcpus-only
    flags.push_back(fmt::format("--numa.{}={}", name, value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return flags;
}

void check(const nlohmann::json& vector, const std::vector<std::string>& more_flags) {
  SCOPED_TRACE(vector["id"].get<std::string>() + " " + vector["topology"].get<std::string>());
  const int wanted = vector["cpus"].get<int>();
  std::vector<std::string> flags = flags_of(vector["options"]);
  flags.insert(flags.end(), more_flags.begin(), more_flags.end());
  SimulatedNode node(vector["topology"].get<std::string>(), flags);
  if (const auto occupied = vector["occupied"].get<std::string>(); !occupied.empty()) {
    const OperationResult outcome = node.apply(fmt::format(R"({{"op":"occupy","cpus":"{}"}})", occupied));
    ASSERT_EQ(outcome.outcome, "ok") << outcome.reason;
  }
  const OperationResult outcome = node.guaranteed("pod", wanted);
  if (vector["expect"].is_null()) {
    EXPECT_EQ(outcome.outcome, "denied") << outcome.cpus.to_string();
    EXPECT_THAT(outcome.reason, HasSubstr(fmt::format("requested={}", wanted)));
    EXPECT_THAT(outcome.reason, HasSubstr("available="));
  } else {
    EXPECT_EQ(outcome.cpus.to_string(), CpuSet::parse(vector["expect"].get<std::string>())->to_string())
        << outcome.reason;
  }
}

void check_all(const std::vector<std::string>& more_flags) {
  std::ifstream file(kVectors);
  ASSERT_TRUE(file) << kVectors;
  std::string line;
  int checked = 0;
  while (std::getline(file, line)) {
    const auto vector = nlohmann::json::parse(line);
    if (vector["cpus"] == 0) continue;
    check(vector, more_flags);
    ++checked;
  }
  EXPECT_GT(checked, 20);
}

TEST(KubeletVectors, AreAnsweredExactly) { check_all({}); }

TEST(KubeletVectors, AreAnsweredExactlyBesideAnSmtPluginThatRoundsNothing) {
  check_all({"--plugins.enable=smt", "--smt.round=deny"});
}

}  // namespace
}  // namespace topolet::simulate
