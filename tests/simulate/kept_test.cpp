// CPUs that are kept for the next attempt of a container that has ended: until when, and who gets them meanwhile.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// How a container ends, and its phase then.
struct End {
  const char* line;
  const char* phase;
};

class Kept : public ::testing::Test {
 protected:
  void start(const std::string& machine, std::vector<std::string> flags = {}) {
    flags.emplace_back("--plugins.enable=numa");
    node_.emplace(machine, flags);
  }

  void run_pod(const std::string& pod) {
    node_->apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed"}})", pod));
  }
  /// The CPUs that it gets; "denied" if none.
  std::string create(const std::string& pod, int cpus, const std::string& container = "main",
                     const std::string& more = "") {
    const OperationResult made = node_->apply(fmt::format(
        R"({{"op":"create","pod":"{}","container":"{}","cpu_request_milli":{},"cpu_limit_milli":{},"memory_limit":4096{}}})",
        pod, container, cpus * 1000, cpus * 1000, more));
    return made.outcome == "placed" ? made.cpus.to_string() : made.outcome;
  }
  std::string run(const std::string& pod, int cpus) {
    run_pod(pod);
    return create(pod, cpus);
  }
  OperationResult about(const std::string& op, const std::string& pod, const std::string& container = "main",
                        const std::string& more = "") {
    return node_->apply(fmt::format(R"({{"op":"{}","pod":"{}","container":"{}"{}}})", op, pod, container, more));
  }
  void pass(int seconds) { node_->apply(fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds)); }

  /// "POD/CONTAINER CPUS PHASE" of those that hold CPUs and do not run.
  std::vector<std::string> kept() {
    std::vector<std::string> all;
    for (const ContainerSnapshot& container : node_->snapshot().containers) {
      if (container.phase != "kept" && container.phase != "crashed") continue;
      all.push_back(fmt::format("{}/{} {} {}", container.key.pod_uid, container.key.name, container.cpus.to_string(),
                                container.phase));
    }
    return all;
  }

  std::optional<SimulatedNode> node_;
};

class KeptAtAnEnd : public Kept, public ::testing::WithParamInterface<End> {};

/// The kubelet makes the next attempt in the same sandbox, and meanwhile another pod comes.
TEST_P(KeptAtAnEnd, AreThoseOfTheNextAttempt) {
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts);
    start("pack:1 numa:1(memory=16GB) core:8 pu:1");
    const std::string had = run("a", 3);
    node_->apply(GetParam().line);
    EXPECT_THAT(kept(), ElementsAre(fmt::format("a/main {} {}", had, GetParam().phase)));
    if (restarts) node_->apply(R"({"op":"restart"})");
    EXPECT_NE(run("b", 3), had);
    EXPECT_EQ(create("a", 3), had);
    EXPECT_THAT(kept(), IsEmpty());
  }
}

TEST_P(KeptAtAnEnd, DoNotMakeAnotherWide) {
  start("pack:2 numa:1(memory=16GB) core:8 pu:1");
  run("x", 3);
  const std::string had = run("a", 5);
  EXPECT_EQ(had, "3-7");
  node_->apply(GetParam().line);
  EXPECT_EQ(run("b", 5), "8-12") << "the other node has room";
  EXPECT_EQ(run("c", 5), "3-7") << "it would be on two nodes";
  EXPECT_THAT(kept(), IsEmpty());
  EXPECT_EQ(create("a", 2), "13-14");
}

TEST_P(KeptAtAnEnd, DoNotKeepAnotherOut) {
  start("pack:1 numa:1(memory=16GB) core:8 pu:1", {"--placement.min-shared-cpus=0"});
  run("a", 3);
  node_->apply(GetParam().line);
  EXPECT_EQ(run("b", 8), "0-7");
  EXPECT_EQ(create("a", 3), "denied");
}

TEST_P(KeptAtAnEnd, AreFreeWhenTheSandboxIsStoppedOrTheTimeIsOver) {
  start("pack:1 numa:1(memory=16GB) core:8 pu:1", {"--placement.crash-hold=1m"});
  const std::string had = run("a", 3);
  node_->apply(GetParam().line);
  node_->apply(R"({"op":"remove_pod","pod":"a"})");
  EXPECT_THAT(kept(), IsEmpty());
  EXPECT_EQ(run("a", 3), had);
  node_->apply(GetParam().line);
  pass(50);
  EXPECT_THAT(kept(), ElementsAre(HasSubstr("a/main")));
  pass(11);
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_P(KeptAtAnEnd, AreNoneWhereNothingIsToBeKept) {
  start("pack:1 numa:1(memory=16GB) core:8 pu:1", {"--placement.crash-hold=0s"});
  run("a", 3);
  EXPECT_EQ(node_->apply(GetParam().line).outcome, "released");
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_P(KeptAtAnEnd, AreFreeOnceTheSandboxIsFoundDead) {
  start("pack:1 numa:1(memory=16GB) core:8 pu:1");
  run("a", 3);
  node_->apply(GetParam().line);
  node_->apply(R"({"op":"sandbox","pod":"a","state":"not-ready"})");
  pass(61);
  EXPECT_THAT(kept(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, KeptAtAnEnd,
    ::testing::Values(End{R"({"op":"stop","pod":"a","container":"main"})", "kept"},
                      End{R"({"op":"exit","pod":"a","container":"main"})", "kept"},
                      End{R"({"op":"exit","pod":"a","container":"main","exit_code":1})", "crashed"},
                      End{R"({"op":"exit","pod":"a","container":"main","exit_code":137})", "crashed"}));

TEST_F(Kept, YieldTheNewestFirst) {
  start("pack:1 numa:1(memory=16GB) core:12 pu:1", {"--placement.min-shared-cpus=0"});
  for (const char* const pod : {"c", "a", "b"}) run(pod, 3);
  about("stop", "c");
  about("exit", "a", "main", R"(,"exit_code":1)");
  about("exit", "b");
  run("x", 5);
  EXPECT_THAT(kept(), ElementsAre("a/main 3-5 crashed", "c/main 0-2 kept"));
  run("y", 3);
  EXPECT_THAT(kept(), ElementsAre("c/main 0-2 kept"));
}

TEST_F(Kept, OfAnInitContainerGoToTheOnesAfterIt) {
  start("pack:1 numa:1(memory=16GB) core:8 pu:1", {"--placement.min-shared-cpus=0"});
  run_pod("a");
  EXPECT_EQ(create("a", 6, "init-1"), "0-5");
  about("exit", "a", "init-1");
  EXPECT_EQ(create("a", 7, "init-2"), "0-6");
  EXPECT_THAT(kept(), IsEmpty());
  about("exit", "a", "init-2", R"(,"exit_code":1)");
  EXPECT_EQ(create("a", 7, "init-2"), "0-6") << "once more";
  about("exit", "a", "init-2");
  EXPECT_EQ(create("a", 4), "0-3");
  EXPECT_EQ(create("a", 4, "side"), "4-7") << "nothing is kept for a main container that runs";
}

TEST_F(Kept, OfAContainerAreNotForThoseThatWereMadeBefore) {
  start("pack:1 numa:1(memory=16GB) core:12 pu:1");
  run_pod("a");
  create("a", 2, "main");
  create("a", 2, "side");
  about("stop", "a", "main");
  about("stop", "a", "side");
  EXPECT_EQ(run("b", 4), "4-7");
  EXPECT_EQ(create("a", 2, "side"), "2-3");
  EXPECT_EQ(create("a", 2, "main"), "0-1");
}

TEST_F(Kept, OfASidecarOutlastInitContainers) {
  start("pack:1 numa:1(memory=16GB) core:12 pu:1");
  run_pod("a");
  EXPECT_EQ(create("a", 2, "sidecar"), "0-1");
  EXPECT_EQ(create("a", 2, "init"), "2-3");
  about("exit", "a", "sidecar");
  about("exit", "a", "init");
  EXPECT_EQ(create("a", 4, "main"), "2-5") << "where the init container was";
  EXPECT_EQ(create("a", 2, "sidecar"), "0-1");
}

TEST_F(Kept, OfTheNewestContainerStayWhereItWasStoppedOrFailed) {
  for (const char* const more : {R"(,"exit_code":3)", ""}) {
    start("pack:1 numa:1(memory=16GB) core:12 pu:1");
    run_pod("a");
    EXPECT_EQ(create("a", 2, "main"), "0-1");
    about(*more == '\0' ? "stop" : "exit", "a", "main", more);
    EXPECT_EQ(create("a", 2, "side"), "2-3") << "it was long in being pulled";
    EXPECT_EQ(create("a", 2, "main"), "0-1");
  }
}

TEST_F(Kept, AreThereForAnAttemptOfAnotherSize) {
  start("pack:1 numa:1(memory=16GB) core:12 pu:1");
  run("a", 4);
  about("stop", "a");
  run("b", 2);
  EXPECT_EQ(create("a", 2), "0-1");
  about("stop", "a");
  EXPECT_EQ(create("a", 3), "0-2") << "and one more";
}

TEST_F(Kept, YieldToTheZoneThatASchedulerHasChosen) {
  start("pack:2 numa:1(memory=16GB) core:4 pu:1", {"--daemon.node-name=n1", "--placement.min-shared-cpus=0"});
  EXPECT_EQ(run("a", 3), "0-2");
  about("stop", "a");
  node_->apply(R"({"op":"run_pod","pod":"b","qos":"guaranteed","annotations":{)"
               R"("topolet.io/zone":"{\"v\":1,\"node\":\"n1\",\"zones\":[0]}"}})");
  EXPECT_EQ(create("b", 3), "0-2") << "what is kept counts as free for schedulers";
  EXPECT_EQ(create("a", 3), "4-6");
}

TEST_F(Kept, YieldToAContainerWhoseCpusGo) {
  start("pack:1 numa:1(memory=16GB) core:5 pu:1");
  EXPECT_EQ(run("a", 2), "0-1");
  EXPECT_EQ(run("b", 2), "2-3");
  about("stop", "a");
  const OperationResult gone = node_->apply(R"({"op":"offline","cpus":"3"})");
  ASSERT_FALSE(gone.changed.empty());
  EXPECT_EQ(gone.changed.front().cpus.size(), 2U) << gone.changed.front().reason;
}

TEST_F(Kept, YieldToAContainerThatKeepsSomeOfItsCpusBesideOneThatShares) {
  start("pack:2 numa:1 core:2 pu:2");
  EXPECT_EQ(node_->burstable("web", 250).cpus.to_string(), "0-3");
  EXPECT_EQ(run("a", 2), "0-1");
  EXPECT_EQ(run("other", 3), "4-6");
  about("stop", "a");
  EXPECT_EQ(run("b", 2), "2-3");
  const OperationResult gone = node_->apply(R"({"op":"offline","cpus":"3"})");
  ASSERT_FALSE(gone.changed.empty());
  EXPECT_EQ(gone.changed.front().cpus.to_string(), "0,2") << gone.changed.front().reason;
}

TEST_F(Kept, AreTakenFromNobodyWhoShares) {
  start("pack:2 numa:1 core:8 pu:1");
  EXPECT_EQ(run("a", 4), "0-3");
  EXPECT_EQ(node_->burstable("shared", 7000).cpus.to_string(), "8-15");
  EXPECT_EQ(node_->burstable("other", 3900).cpus.to_string(), "4-7");
  about("exit", "a", "main", R"(,"exit_code":1)");
  const OperationResult again = node_->apply(
      R"({"op":"create","pod":"a","container":"main","cpu_request_milli":4000,"cpu_limit_milli":4000,"memory_limit":4096})");
  EXPECT_EQ(again.cpus.to_string(), "0-3");
  EXPECT_THAT(again.reason, ::testing::Not(HasSubstr("shared containers"))) << "they have not shared these";
}

}  // namespace
}  // namespace topolet::simulate
