// The properties of texts and files on the examples in tests/fuzz/corpus and on damaged ones. A run is always the same;
// TOPOLET_FUZZ_SEED plays another, TOPOLET_FUZZ_ROUNDS makes it longer, and scripts/fuzz searches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/annotations_properties.hpp"
#include "tests/fuzz/cdi_properties.hpp"
#include "tests/fuzz/config_properties.hpp"
#include "tests/fuzz/damage.hpp"
#include "tests/fuzz/extender_request_properties.hpp"
#include "tests/fuzz/kernel_files_properties.hpp"
#include "tests/fuzz/nri_properties.hpp"
#include "tests/fuzz/store_file_properties.hpp"
#include "tests/fuzz/store_rows_properties.hpp"

namespace topolet {
namespace {

std::vector<std::string> examples_in(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(TOPOLET_FUZZ_CORPUS "/" + folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return texts;
}

class TextFuzz : public ::testing::Test {
 protected:
  using Judge = TextJudgement (*)(const std::string&);

  TextFuzz() { std::cout << "TOPOLET_FUZZ_SEED=" << seed_ << "\n"; }

  /// Examples first, then damaged ones, some of them two in one. Some must be accepted and some refused: a property
  /// that sees only one kind says little.
  void expect_holds(const std::string& folder, Judge judge, std::uint64_t rounds) {
    const std::vector<std::string> examples = examples_in(folder);
    ASSERT_FALSE(examples.empty());
    for (const std::string& example : examples) expect_fine(judge(example), example);
    std::uint64_t accepted = 0;
    for (std::uint64_t i = 0; i < rounds && !HasFailure(); ++i) {
      std::string text = one_of(examples);
      if (engine_() % 8 == 0) text += one_of(examples);
      text = damaged(engine_, std::move(text));
      const TextJudgement judgement = judge(text);
      expect_fine(judgement, text);
      accepted += judgement.accepted ? 1 : 0;
    }
    EXPECT_GT(accepted, rounds / 50);
    EXPECT_LT(accepted, rounds);
  }

  void expect_fine(const TextJudgement& judgement, const std::string& text) const {
    ASSERT_EQ(judgement.violation, "") << "TOPOLET_FUZZ_SEED=" << seed_ << ", input " << hex(text);
  }

  const std::string& one_of(const std::vector<std::string>& texts) { return texts[engine_() % texts.size()]; }

  const std::uint64_t seed_ = from_environment("TOPOLET_FUZZ_SEED", 1);
  const std::uint64_t rounds_ = from_environment("TOPOLET_FUZZ_ROUNDS", 2000);
  std::mt19937_64 engine_{seed_};
};

TEST_F(TextFuzz, ConfigurationIsReadOrItsMistakesAreNamed) { expect_holds("config", judge_config, rounds_ / 8); }

TEST_F(TextFuzz, AnnotationsAreReadAsAPlainerReaderReadsThem) {
  expect_holds("annotations", judge_annotations, rounds_);
}

TEST_F(TextFuzz, RequestsToTheExtenderAreAnsweredOrRefused) {
  expect_holds("extender_request", judge_extender_request, rounds_);
}

TEST_F(TextFuzz, KernelFilesAreReadAsAPlainerReaderReadsThem) {
  expect_holds("kernel_files", judge_kernel_files, rounds_);
}

TEST_F(TextFuzz, WhatARuntimeSendsOverNriIsReadAsAPlainerReaderReadsIt) { expect_holds("nri", judge_nri, rounds_); }

TEST_F(TextFuzz, CdiSpecsAreTheSameAsJsonAndAsYaml) { expect_holds("cdi", judge_cdi, rounds_); }

TEST_F(TextFuzz, StoredRowsAreReadBackOrTheColumnIsNamed) { expect_holds("store_rows", judge_store_rows, rounds_); }

TEST_F(TextFuzz, DamagedDatabasesAreOpenedOrSetAside) {
  expect_fine(judge_store_file(""), "");
  for (std::uint64_t i = 0; i < rounds_ / 50 && !HasFailure(); ++i) {
    const std::string damage = random_bytes(engine_, 60);
    expect_fine(judge_store_file(damage), damage);
  }
}

}  // namespace
}  // namespace topolet
