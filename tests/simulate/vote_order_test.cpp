// Plugins that want different things, in every order of their `enable` lines.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/simulate/simulation.hpp"
#include "tests/simulate/hybrid_machine.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

/// The plugins of the tree and two rivals, in one directory.
class VoteOrder : public ::testing::Test {
 protected:
  VoteOrder() {
    for (const std::string& plugin : plugins_) {
      const std::filesystem::path from = plugin.starts_with("rival") ? TOPOLET_RIVALS_DIR : TOPOLET_BUILT_PLUGINS;
      std::filesystem::copy_file(from / (plugin + ".so"), directory_.path() / (plugin + ".so"));
    }
  }

  std::unique_ptr<Simulation> simulation(const std::vector<std::string>& order, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--config", "/dev/null", "--placement.deadline-ms=60000",
                                          "--daemon.plugin-dir=" + directory_.path().string()};
    for (const std::string& plugin : order) arguments.push_back("--plugins.enable=" + plugin);
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto made = Simulation::make({.xml_file = machine_.file()}, plugin::load_config(config::read_raw(arguments)));
    if (!made) throw std::logic_error(made.error().message);
    return *std::move(made);
  }

  /// All that came of a few containers.
  static std::string story(Simulation& node) {
    const std::vector<std::string> lines = {
        R"({"op":"run_pod","pod":"a","qos":"guaranteed"})",
        R"({"op":"create","pod":"a","container":"m","cpu_request_milli":1000,"cpu_limit_milli":1000,"memory_limit":4096})",
        R"({"op":"run_pod","pod":"b","qos":"guaranteed","annotations":)"
        R"({"scheduling.koordinator.sh/resource-status":"{\"cpuset\":\"4-7\"}"}})",
        R"({"op":"create","pod":"b","container":"m","cpu_request_milli":2000,"cpu_limit_milli":2000,"memory_limit":4096})",
        R"({"op":"run_pod","pod":"c","qos":"burstable"})",
        R"({"op":"create","pod":"c","container":"m","cpu_request_milli":500,"memory_limit":4096})"};
    std::string text;
    for (const std::string& line : lines) {
      const auto operation = parse_operation(line);
      if (!operation) throw std::logic_error(operation.error().message + ": " + line);
      const OperationResult outcome = node.apply(*operation);
      text += fmt::format("{} {} {} {} {}\n", outcome.outcome, outcome.mode, outcome.cpus.to_string(),
                          outcome.mems.to_string(), outcome.reason);
      if (outcome.verdicts) text += fmt::format("{}\n", fmt::join(outcome.verdicts->dropped, "\n"));
    }
    return text;
  }

  std::string story_in_any_order(const std::vector<std::string>& more) {
    std::vector<std::string> order = plugins_;
    std::set<std::string> stories;
    do {
      stories.insert(story(*simulation(order, more)));
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(stories.size(), 1U) << fmt::format("{}", fmt::join(stories, "\n---\n"));
    return *stories.begin();
  }

  const TempDir directory_;
  const HybridMachine machine_{{.two_nodes = true}};
  const std::vector<std::string> plugins_ = {"foreign-zone", "numa", "rival-0", "rival-1"};
};

TEST_F(VoteOrder, OfEqualPluginsIsThatOfTheirIds) {
  const std::string told = story_in_any_order({});
  EXPECT_THAT(told, HasSubstr("rival-1: variable RIVAL: another plugin has set it"));
  EXPECT_THAT(told, HasSubstr("rival-1: annotation example.com/rival: another plugin has set it"));
  EXPECT_THAT(told, HasSubstr("rival-1: narrowing to"));
}

TEST_F(VoteOrder, IsThatOfTheirWeights) {
  const std::string told = story_in_any_order({"--plugins.weight.rival-1=3", "--plugins.weight.rival-0=2"});
  EXPECT_THAT(told, HasSubstr("rival-0: variable RIVAL: another plugin has set it"));
  EXPECT_THAT(told, HasSubstr("rival-0: annotation example.com/rival: another plugin has set it"));
  EXPECT_THAT(told, HasSubstr("rival-0: narrowing to"));
}

}  // namespace
}  // namespace topolet::simulate
