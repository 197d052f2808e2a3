#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/topology/discover.hpp"
#include "tests/topology/outline.hpp"

namespace topolet::topology {
namespace {

namespace fs = std::filesystem;

class RecordedMachine : public testing::TestWithParam<const char*> {};

std::string read(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST_P(RecordedMachine, LooksAsItsOutlineSays) {
  const fs::path xml = fs::path(TOPOLET_TEST_DATA) / "topologies" / (std::string(GetParam()) + ".xml");
  const auto machine = discover({.xml_file = xml});
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  const std::string expected = read(fs::path(RECORDED_OUTLINES) / (std::string(GetParam()) + ".txt"));
  EXPECT_EQ(outline(**machine), expected);
}

INSTANTIATE_TEST_SUITE_P(All, RecordedMachine,
                         testing::Values("16amd64-8n2c-cpusets", "16em64t-4s2c2t", "192em64t-24n8c2t",
                                         "24em64t-2n6c2t-pci", "64intel64-fakeKNL-SNC4-hybrid", "nvidia-dgx2",
                                         "power8gpudistances"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace topolet::topology
