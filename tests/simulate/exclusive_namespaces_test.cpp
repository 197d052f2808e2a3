// The CPUs that annotations of pods take, with the plugins that read them, inside placement.exclusive-namespaces and
// outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/simulate/smt_nodes.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kEightThreads = "pack:1 numa:1 core:4 pu:2";
constexpr const char* kOwnCpus = R"("topolet.io/cpus":"exclusive")";
constexpr const char* kIgnored =
    "annotation topolet.io/smt = isolate is ignored: placement.exclusive-namespaces does not list namespace";

/// A node where no namespace may take more.
SimulatedNode strict(Flags more = {}) {
  more.push_back("--placement.exclusive-namespaces=none");
  return SimulatedNode(kEightThreads, with(std::move(more)));
}

TEST(ExclusiveNamespacesWithPlugins, OutsideASmallRequestTakesNeitherACpuNorACore) {
  SimulatedNode node = strict();
  const OperationResult tiny = run(node, "tiny", "burstable", 10, std::string(kOwnCpus) + "," + kIsolate);
  EXPECT_EQ(tiny.mode, "shared") << tiny.reason;
  EXPECT_EQ(tiny.cpus.to_string(), "0-7");
  EXPECT_TRUE(tiny.withheld.empty());
  EXPECT_THAT(tiny.reason, HasSubstr(kIgnored));
  EXPECT_THAT(tiny.reason, HasSubstr("topolet.io/cpus = exclusive is ignored for a CPU request that is not a whole"));
}

TEST(ExclusiveNamespacesWithPlugins, OutsideWholeCpusAreExclusiveAndNoSiblingsIdle) {
  SimulatedNode node = strict();
  const OperationResult whole = run(node, "whole", "guaranteed", 3000, std::string(kOwnCpus) + "," + kIsolate);
  EXPECT_EQ(whole.mode, "exclusive") << whole.reason;
  EXPECT_EQ(whole.cpus.size(), 3U);
  EXPECT_TRUE(whole.withheld.empty()) << whole.reason;
  EXPECT_THAT(whole.reason, HasSubstr(kIgnored));
  const OperationResult burstable = run(node, "burstable", "burstable", 2000, kOwnCpus);
  EXPECT_EQ(burstable.mode, "exclusive") << burstable.reason;
}

TEST(ExclusiveNamespacesWithPlugins, OutsideTheNodesOwnOptionIsolatesAnyway) {
  SimulatedNode node = strict({"--smt.isolate-siblings=exclusive"});
  EXPECT_EQ(run(node, "asks", "guaranteed", 1000, kIsolate).withheld.size(), 1U);
  EXPECT_EQ(run(node, "silent", "guaranteed", 1000).withheld.size(), 1U);
  EXPECT_TRUE(run(node, "declines", "guaranteed", 1000, R"("topolet.io/smt":"share")").withheld.empty());
}

TEST(ExclusiveNamespacesWithPlugins, InsideAllOfItCounts) {
  SimulatedNode node(kEightThreads, with({"--placement.exclusive-namespaces=def*"}));
  const OperationResult tiny = run(node, "tiny", "burstable", 10, std::string(kOwnCpus) + "," + kIsolate);
  EXPECT_EQ(tiny.mode, "exclusive") << tiny.reason;
  EXPECT_EQ(tiny.withheld.size(), 1U);
  EXPECT_THAT(tiny.reason, Not(HasSubstr("ignored")));
}

TEST(ExclusiveNamespacesWithPlugins, OutsideAResizeTakesNoMoreEither) {
  SimulatedNode node = strict();
  run(node, "a", "guaranteed", 1000, std::string(kOwnCpus) + "," + kIsolate);
  const OperationResult grown =
      node.apply(R"({"op":"update","pod":"a","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000})");
  EXPECT_EQ(grown.cpus.size(), 2U) << grown.reason;
  EXPECT_TRUE(grown.withheld.empty()) << grown.reason;
  const OperationResult shrunk =
      node.apply(R"({"op":"update","pod":"a","container":"main","cpu_request_milli":1500,"cpu_limit_milli":1500})");
  EXPECT_EQ(shrunk.mode, "shared") << shrunk.reason;
}

TEST(ExclusiveNamespacesWithPlugins, OutsideTheNextAttemptIsDecidedAnewAndSoIsARestart) {
  SimulatedNode node = strict();
  run(node, "a", "burstable", 1500, kOwnCpus);
  node.apply(R"({"op":"restart"})");
  EXPECT_EQ(cpus_of(node, "a").to_string(), "0-7");
  node.apply(R"({"op":"exit","pod":"a","container":"main","exit_code":1})");
  const OperationResult again =
      node.apply(R"({"op":"create","pod":"a","container":"main","attempt":1,"cpu_request_milli":1500})");
  EXPECT_EQ(again.mode, "shared") << again.reason;
}

}  // namespace
}  // namespace topolet::simulate
