// numa.full-pcpus-only on a machine whose cores are not alike, as the daemon runs it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/simulate/simulated.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

const std::vector<std::vector<unsigned>> kCores = {{0, 1}, {2, 3}, {4}, {5}, {6}, {7}};

/// The fast cores, of two threads, on node 0, the slow ones on node 1; or all on one node.
class MachineOfTwoKinds {
 public:
  explicit MachineOfTwoKinds(bool one_node)
      : file_(std::filesystem::temp_directory_path() / fmt::format("topolet-full-cores-{}.xml", getpid())) {
    const std::string fast = cores(0, 2, 0);
    const std::string slow = cores(2, 6, one_node ? 0 : 1);
    const std::string inside = one_node ? node(0, 0xff, fast + slow) : node(0, 0x0f, fast) + node(1, 0xf0, slow);
    std::ofstream(file_) << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                            "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
                         << object("Machine", 0, 0xff, one_node ? 1 : 3, inside)
                         << "<cpukind cpuset=\"0xf0\" forced_efficiency=\"0\"/>\n"
                            "<cpukind cpuset=\"0x0f\" forced_efficiency=\"1\"/>\n</topology>\n";
  }
  ~MachineOfTwoKinds() { std::filesystem::remove(file_); }
  MachineOfTwoKinds(const MachineOfTwoKinds&) = delete;
  MachineOfTwoKinds& operator=(const MachineOfTwoKinds&) = delete;

  std::string file() const { return file_.string(); }

 private:
  std::string object(const char* type, unsigned os_index, unsigned cpus, unsigned nodes, const std::string& inside) {
    return fmt::format(
        "<object type=\"{}\" os_index=\"{}\" cpuset=\"{:#x}\" complete_cpuset=\"{:#x}\" nodeset=\"{:#x}\" "
        "complete_nodeset=\"{:#x}\" gp_index=\"{}\">\n{}</object>\n",
        type, os_index, cpus, cpus, nodes, nodes, ++objects_, inside);
  }
  std::string node(unsigned os_index, unsigned cpus, const std::string& inside) {
    const unsigned nodes = 1U << os_index;
    return object("Package", os_index, cpus, nodes, object("NUMANode", os_index, cpus, nodes, "") + inside);
  }
  std::string cores(std::size_t from, std::size_t to, unsigned node) {
    std::string text;
    for (std::size_t i = from; i < to; ++i) {
      unsigned all = 0;
      std::string pus;
      for (const unsigned pu : kCores[i]) {
        all |= 1U << pu;
        pus += object("PU", pu, 1U << pu, 1U << node, "");
      }
      text += object("Core", kCores[i][0], all, 1U << node, pus);
    }
    return text;
  }

  int objects_ = 0;
  const std::filesystem::path file_;
};

std::vector<std::string> full(const std::string& policy, bool with_smt) {
  std::vector<std::string> flags = {"--plugins.enable=numa", "--numa.full-pcpus-only=true", "--numa.policy=" + policy};
  if (with_smt) flags.insert(flags.end(), {"--plugins.enable=smt", "--smt.round=deny"});
  return flags;
}

bool are_whole_cores(const CpuSet& cpus) {
  for (const auto& core : kCores) {
    std::size_t of_it = 0;
    for (const unsigned cpu : core) of_it += cpus.contains(cpu) ? 1 : 0;
    if (of_it != 0 && of_it != core.size()) return false;
  }
  return true;
}

class FullCoresSimulated : public ::testing::TestWithParam<bool> {
 protected:
  const MachineOfTwoKinds machine_{GetParam()};
};

TEST_P(FullCoresSimulated, GivesWholeCoresOfOneKindAsLongAsThatWorks) {
  for (const char* const policy : {"none", "best-effort"}) {
    for (const bool with_smt : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, smt {}", policy, with_smt));
      Simulated node(machine_.file(), full(policy, with_smt));
      node.besteffort("any");
      EXPECT_EQ(node.guaranteed("one", 1).cpus.to_string(), "4");
      EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "5-7");
      EXPECT_EQ(node.guaranteed("two", 2).cpus.to_string(), "0-1");
    }
  }
}

TEST_P(FullCoresSimulated, GivesWholeCoresOfSeveralKindsWhereOneIsNotEnough) {
  for (const char* const policy : {"none", "best-effort"}) {
    for (const bool with_smt : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, smt {}", policy, with_smt));
      Simulated node(machine_.file(), full(policy, with_smt));
      node.besteffort("any");
      EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "4-6");
      EXPECT_EQ(node.guaranteed("other", 3).cpus.to_string(), "0-1,7");
    }
  }
}

TEST_P(FullCoresSimulated, DeniesWhatOnlyPartsOfCoresCouldMakeUp) {
  Simulated node(machine_.file(), full("best-effort", true));
  node.apply(R"({"op":"occupy","cpus":"4-7"})");
  const Outcome denied = node.guaranteed("one", 1);
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(denied.reason, HasSubstr("SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2"));
  EXPECT_EQ(node.guaranteed("two", 2).cpus.to_string(), "0-1");
}

TEST_P(FullCoresSimulated, GrowsByWholeCoresOfTheKindThatAContainerHas) {
  Simulated node(machine_.file(), full("best-effort", false));
  EXPECT_EQ(node.guaranteed("pod", 1).cpus.to_string(), "4");
  const Outcome grown =
      node.apply(R"({"op":"update","pod":"pod","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000})");
  EXPECT_EQ(grown.cpus.to_string(), "4-5") << grown.reason;
}

TEST_P(FullCoresSimulated, NeverGivesPartsOfCores) {
  for (const char* const policy : {"none", "best-effort", "restricted"}) {
    Simulated node(machine_.file(), full(policy, false));
    std::mt19937 dice(7);
    std::vector<std::string> pods;
    for (int step = 0; step < 120; ++step) {
      if (!pods.empty() && dice() % 3 == 0) {
        const std::size_t gone = dice() % pods.size();
        node.apply(fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", pods[gone]));
        pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(gone));
        continue;
      }
      const std::string pod = fmt::format("pod-{}", step);
      const Outcome outcome = node.guaranteed(pod, 1 + static_cast<int>(dice() % 5));
      pods.push_back(pod);
      EXPECT_TRUE(are_whole_cores(outcome.cpus)) << policy << ", step " << step << ": " << outcome.cpus.to_string();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OneNodeOrTwo, FullCoresSimulated, ::testing::Bool());

}  // namespace
}  // namespace topolet::simulate
