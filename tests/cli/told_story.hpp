// A state directory that a story has been told to, and what the commands say of it.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {

class ToldStory : public ::testing::Test {
 protected:
  /// Runs `topolet simulate` on a machine by hwloc's description.
  void simulate(const std::string& machine, const std::string& story, const std::string& config = "") {
    state_.directory().write("topolet.conf", config);
    state_.directory().write("story.jsonl", story);
    const Said said = testing::simulate({"--topology", machine, "--config", state_.file("topolet.conf"), "--workload",
                                         state_.file("story.jsonl"), "--state-dir", state_.path()});
    ASSERT_EQ(said.code, 0) << said.text;
  }
  std::string said(const std::vector<std::string>& words) const {
    const Said answer = state_.topolet(words);
    EXPECT_EQ(answer.code, 0) << answer.text;
    return answer.text;
  }
  nlohmann::json answer(std::vector<std::string> words) const {
    words.emplace_back("--json");
    return nlohmann::json::parse(said(words), nullptr, false);
  }

  StateDir state_;
};

}  // namespace topolet::testing
