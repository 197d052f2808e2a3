// Golden answers on recorded machines: who lands where, and why.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

std::string answer(const std::string& what, const OperationResult& outcome) {
  std::string text = fmt::format("{}: {} {} on {}{}{}\n  {}\n", what, outcome.outcome,
                                 outcome.mode.empty() ? "-" : outcome.mode, outcome.cpus.to_string(),
                                 outcome.withheld.empty() ? "" : " withholding " + outcome.withheld.to_string(),
                                 outcome.mems.empty() ? "" : " mems " + outcome.mems.to_string(), outcome.reason);
  for (const MovedContainer& moved : outcome.changed)
    text += fmt::format("  {} moves to {}\n", moved.pod, moved.cpus.to_string());
  return text;
}

/// A day on the machine: the ordinary, the odd and the too large.
std::string story(const std::string& machine) {
  SimulatedNode node(machine, {"--plugins.enable=numa"});
  const std::size_t cpus = node.snapshot().rules.allowed.size();
  std::string text = fmt::format("{} CPUs, {} NUMA nodes\n", cpus, node.snapshot().topology->nodes.size());
  text += answer("besteffort", node.besteffort("idle"));
  text += answer("burstable 1500m", node.burstable("web", 1500));
  text += answer("guaranteed 1", node.guaranteed("one", 1));
  text += answer("guaranteed 2", node.guaranteed("two", 2));
  text += answer("guaranteed 3", node.guaranteed("three", 3));
  text += answer("guaranteed third of the machine", node.guaranteed("third", static_cast<int>(cpus / 3)));
  text += answer("guaranteed all", node.guaranteed("all", static_cast<int>(cpus)));
  text += answer("guaranteed 2 stops", node.apply(R"({"op":"stop","pod":"two","container":"main"})"));
  text += answer("guaranteed 4", node.guaranteed("four", 4));
  return text;
}

class RecordedMachine : public testing::TestWithParam<const char*> {};

TEST_P(RecordedMachine, AnswersAsBefore) {
  const std::string machine = GetParam();
  const std::string now = story(machine);
  const std::filesystem::path golden =
      std::filesystem::path(TOPOLET_GOLDEN_DIR) / (std::filesystem::path(machine).stem().string() + ".txt");
  if (std::getenv("TOPOLET_WRITE_GOLDEN") != nullptr) {
    std::ofstream(golden) << now;
    GTEST_SKIP() << "wrote " << golden.filename();
  }
  std::ostringstream before;
  before << std::ifstream(golden).rdbuf();
  EXPECT_EQ(now, before.str()) << "if this change is meant, run with TOPOLET_WRITE_GOLDEN=1 and read the difference";
}

INSTANTIATE_TEST_SUITE_P(Machines, RecordedMachine,
                         testing::Values("16amd64-8n2c-cpusets.xml", "16em64t-4s2c2t.xml", "192em64t-24n8c2t.xml",
                                         "24em64t-2n6c2t-pci.xml", "64intel64-fakeKNL-SNC4-hybrid.xml",
                                         "nvidia-dgx2.xml", "power8gpudistances.xml"),
                         [](const auto& machine) {
                           std::string name = machine.param;
                           for (char& letter : name)
                             letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
                           return name;
                         });

}  // namespace
}  // namespace topolet::simulate
