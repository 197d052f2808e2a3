// topolet config kubelet: the kubelet's allocatable becomes what topolet can grant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMachine = "pack:2 [numa(memory=4GB)] core:4 pu:2";

Said kubelet_config(const std::string& config, const std::string& machine = kMachine) {
  const TempDir directory;
  return topolet({"config", "kubelet", "--config", directory.write("topolet.conf", config), "--topology", machine});
}

TEST(ConfigKubelet, KeepsBackWhatAlwaysStaysShared) {
  const Said said = kubelet_config("");
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.text, AllOf(HasSubstr("kind: KubeletConfiguration\n"), HasSubstr("\ncpuManagerPolicy: none\n"),
                               HasSubstr("\ncontainerRuntimeEndpoint: unix:///run/topolet/topolet.sock\n"),
                               HasSubstr("Of 16 CPUs online pods can request 15"), HasSubstr("\n  cpu: \"1\"\n"),
                               Not(HasSubstr("  memory:"))));
}

TEST(ConfigKubelet, LeavesTheKubeletItsRuntimeWhereTheRuntimeAsksTopolet) {
  const Said said = kubelet_config("[daemon]\nfront = nri\n");
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.text, AllOf(HasSubstr("kind: KubeletConfiguration\n"), HasSubstr("\n  cpu: \"1\"\n"),
                               Not(HasSubstr("containerRuntimeEndpoint")), Not(HasSubstr("cpuManagerPolicy"))));
}

TEST(ConfigKubelet, AddsUpReservedAndExcludedCpus) {
  EXPECT_THAT(kubelet_config("[placement]\nreserved-cpus = 0-1\nallowed-cpus = 0-13\nmin-shared-cpus = 3\n").text,
              AllOf(HasSubstr("\n  cpu: \"7\"\n"), HasSubstr("CPUs 14-15 (outside placement.allowed-cpus"),
                    HasSubstr("CPUs 0-1 (placement.reserved-cpus)"),
                    HasSubstr("3 of the others, to stay shared (placement.min-shared-cpus)")));
}

TEST(ConfigKubelet, CountsAReservedCpuThatIsNotAllowedOnce) {
  EXPECT_THAT(kubelet_config("[placement]\nreserved-cpus = 0-1\nallowed-cpus = 1-15\n").text,
              HasSubstr("\n  cpu: \"3\"\n"));
}

TEST(ConfigKubelet, LeavesOutIsolatedCpus) {
  const TempDir directory;
  const std::string config = directory.write("topolet.conf", "[placement]\nreserved-cpus = 0-1\n");
  EXPECT_THAT(topolet({"config", "kubelet", "--config", config, "--topology", kMachine, "--isolated-cpus", "1-5"}).text,
              AllOf(HasSubstr("\n  cpu: \"7\"\n"), HasSubstr("CPUs 2-5 (isolated by the kernel)")));
}

/// With CPUs 2-5 isolated, and 0-1 reserved.
std::string with_isolated(const std::string& placement) {
  const TempDir directory;
  const std::string config = directory.write("topolet.conf", "[placement]\nreserved-cpus = 0-1\n" + placement);
  return topolet({"config", "kubelet", "--config", config, "--topology", kMachine, "--isolated-cpus", "1-5"}).text;
}

TEST(ConfigKubelet, CountsIsolatedCpusWherePodsCanHaveThem) {
  EXPECT_THAT(with_isolated("isolated = prefer\n"),
              AllOf(HasSubstr("\n  cpu: \"3\"\n"), HasSubstr("Among them are CPUs 2-5, which the kernel isolates:"),
                    Not(HasSubstr("isolated by the kernel"))));
  EXPECT_THAT(with_isolated("exclusive-namespaces = rt-*\n"), HasSubstr("\n  cpu: \"3\"\n"));
  EXPECT_THAT(with_isolated("isolated = always\n"),
              AllOf(HasSubstr("\n  cpu: \"12\"\n"), HasSubstr("CPUs 6-15 (the shared pool, of which no container")))
      << "no more than can be granted";
  for (const char* nobody : {"exclusive-namespaces = rt-*\nannotations = cpus\n", "isolated = annotated\n"})
    EXPECT_THAT(with_isolated(nobody), HasSubstr("\n  cpu: \"7\"\n")) << nobody;
  EXPECT_THAT(with_isolated("isolated = always\nexclusive = never\n"), HasSubstr("\n  cpu: \"6\"\n"));
  EXPECT_THAT(with_isolated("min-shared-cpus = 10\n"),
              AllOf(HasSubstr("could not request any"), HasSubstr("placement.isolated = prefer or always")));
}

TEST(ConfigKubelet, KeepsNothingBackForSharedContainersThatNobodyDisplaces) {
  for (const char* rule : {"exclusive = never", "when-full = share"}) {
    EXPECT_THAT(kubelet_config(std::string("[placement]\nmin-shared-cpus = 4\n") + rule + "\n").text,
                HasSubstr("\n  cpu: \"0\"\n"));
  }
}

// The kubelet may admit as many containers of one CPU as the daemon's own engine grants.
TEST(ConfigKubelet, IsWhatCanBeGranted) {
  const TempDir directory;
  const std::string config =
      directory.write("topolet.conf", "[placement]\nreserved-cpus = 0-1\nallowed-cpus = 0-13\nmin-shared-cpus = 3\n");
  std::string workload;
  for (int i = 0; i < 16; ++i) {
    const std::string pod = "\"pod\":\"p" + std::to_string(i) + "\"";
    workload +=
        "{\"op\":\"run_pod\"," + pod + ",\"qos\":\"guaranteed\"}\n{\"op\":\"create\"," + pod +
        ",\"container\":\"main\",\"cpu_request_milli\":1000,\"cpu_limit_milli\":1000,\"memory_limit\":1048576}\n";
  }
  const Said simulated = simulate(
      {"--topology", kMachine, "--config", config, "--workload", directory.write("pods.jsonl", workload), "--json"});
  std::size_t granted = 0;
  const std::string exclusive = "\"mode\":\"exclusive\"";
  for (std::size_t at = simulated.text.find(exclusive); at != std::string::npos;
       at = simulated.text.find(exclusive, at + 1)) {
    ++granted;
  }
  EXPECT_THAT(topolet({"config", "kubelet", "--config", config, "--topology", kMachine}).text,
              HasSubstr("Of 16 CPUs online pods can request " + std::to_string(granted) + "."))
      << simulated.text;
}

TEST(ConfigKubelet, ReservesTheMemoryThatThePluginKeepsFree) {
  const std::string reserved = "reserved-memory = 0:1Gi,1:512Mi\n";
  EXPECT_THAT(kubelet_config("[plugins]\nenable = numa\n[numa]\n" + reserved).text,
              AllOf(HasSubstr("1536Mi (numa.reserved-memory)"), HasSubstr("\n  memory: 1436Mi\n")));
  EXPECT_THAT(kubelet_config("[plugins]\nenable = numa\n[numa]\nreserved-memory = 1Gi\n").text,
              HasSubstr("\n  memory: 1948Mi\n"));
  EXPECT_THAT(kubelet_config("[plugins]\nenable = numa\n[numa]\nreserved-memory = 32Mi\n").text,
              Not(HasSubstr("  memory:")));
}

TEST(ConfigKubelet, SaysWhatIsWrong) {
  const Said amount = kubelet_config("[plugins]\nenable = numa\n[numa]\nreserved-memory = much\n");
  EXPECT_EQ(amount.code, 2);
  EXPECT_THAT(amount.text, HasSubstr("numa.reserved-memory: 'much'"));
  const Said none = kubelet_config("[placement]\nreserved-cpus = 0-9\nmin-shared-cpus = 6\n");
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.text, AllOf(HasSubstr("could not request any of the 16 CPUs"), HasSubstr("reserved-cpus")));
}

TEST(ConfigKubelet, ReadsThisMachine) {
  const TempDir directory;
  EXPECT_THAT(
      topolet({"config", "kubelet", "--config", directory.write("topolet.conf", "[placement]\nwhen-full = share\n")})
          .text,
      HasSubstr("\nsystemReserved:\n"));
}

}  // namespace
}  // namespace topolet::testing
