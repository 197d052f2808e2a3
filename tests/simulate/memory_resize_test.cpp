// A container asks for more or less memory, or huge pages, while it runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulate/hwloc_xml.hpp"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwoNodesOf64GiB = "pack:2 numa:1(memory=68719476736) core:8 pu:1";
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

class MemoryResize : public ::testing::Test {
 protected:
  void start(std::vector<std::string> flags, const std::string& machine = kTwoNodesOf64GiB) {
    flags.emplace_back("--plugins.enable=numa");
    if (binds_) flags.emplace_back("--numa.memory=bind");
    node_.emplace(machine, flags);
  }

  void run_pod(const std::string& pod, const std::string& qos, const std::string& more = "") {
    node_->apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"{}"{}}})", pod, qos, more));
  }
  OperationResult create_guaranteed(const std::string& pod, int cpus, std::int64_t gib, const std::string& more = "") {
    run_pod(pod, "guaranteed");
    return ask("create", pod, cpus, gib, more);
  }
  OperationResult create_burstable(const std::string& pod, std::int64_t gib) {
    run_pod(pod, "burstable");
    return node_->apply(fmt::format(
        R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":100,"memory_request":{},"memory_limit":{}}})",
        pod, gib * kGiB, gib * kGiB));
  }
  OperationResult resize(const std::string& pod, int cpus, std::int64_t gib, const std::string& more = "") {
    return ask("update", pod, cpus, gib, more);
  }
  OperationResult resize_memory(const std::string& pod, std::int64_t gib) {
    return node_->apply(
        fmt::format(R"({{"op":"update","pod":"{}","container":"main","memory_request":{},"memory_limit":{}}})", pod,
                    gib * kGiB, gib * kGiB));
  }
  OperationResult resize_both(const std::string& pod, int milli, std::int64_t gib) {
    return node_->apply(fmt::format(
        R"({{"op":"update","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{},"memory_request":{},"memory_limit":{}}})",
        pod, milli, milli, gib * kGiB, gib * kGiB));
  }
  OperationResult ask(const std::string& op, const std::string& pod, int cpus, std::int64_t gib,
                      const std::string& more) {
    return node_->apply(fmt::format(
        R"({{"op":"{}","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{},"memory_request":{},"memory_limit":{}{}}})",
        op, pod, cpus * 1000, cpus * 1000, gib * kGiB, gib * kGiB, more));
  }

  std::optional<SimulatedNode> node_;
  bool binds_ = true;
};

TEST_F(MemoryResize, AddsTheNodeThatHasRoom) {
  start({});
  EXPECT_EQ(create_guaranteed("a", 2, 10).mems.to_string(), "0");
  EXPECT_EQ(create_guaranteed("b", 2, 40).mems.to_string(), "0");
  const OperationResult grown = resize("a", 2, 40);
  EXPECT_EQ(grown.outcome, "ok");
  EXPECT_EQ(grown.cpus.to_string(), "0-1");
  EXPECT_EQ(grown.mems.to_string(), "0-1");
  EXPECT_THAT(grown.reason, HasSubstr("it keeps its CPUs"));
  EXPECT_THAT(grown.reason, HasSubstr("memory is bound to nodes 0-1"));
  ASSERT_TRUE(grown.verdicts.has_value());
  EXPECT_GT(grown.verdicts->candidates, 0U);
}

TEST_F(MemoryResize, IsBookedForTheNextContainer) {
  start({"--numa.policy=single-numa-node"});
  create_guaranteed("a", 2, 10);
  EXPECT_EQ(resize("a", 2, 60).outcome, "ok");
  EXPECT_EQ(create_guaranteed("b", 2, 10).mems.to_string(), "1");
}

TEST_F(MemoryResize, OfASharedContainerKeepsItsCpusToo) {
  start({});
  const OperationResult web = create_burstable("web", 10);
  ASSERT_EQ(web.mems.to_string(), "0");
  create_guaranteed("b", 2, 40);
  const CpuSet before = node_->apply(R"({"op":"update","pod":"web","container":"main","cpu_request_milli":200})").cpus;
  const OperationResult grown = resize_memory("web", 40);
  EXPECT_EQ(grown.outcome, "ok");
  EXPECT_EQ(grown.mems.to_string(), "0-1");
  EXPECT_EQ(grown.cpus, before);
}

TEST_F(MemoryResize, OfASharedContainerLeavesItWhereItIsInThePool) {
  start({});
  create_burstable("web", 10);
  create_guaranteed("b", 2, 40);
  resize_memory("web", 40);
  const OperationResult more = create_guaranteed("c", 2, 1);
  const OperationResult gone = node_->apply(R"({"op":"remove_pod","pod":"b"})");
  for (const OperationResult& result : {more, gone}) {
    for (const auto& changed : result.changed) EXPECT_TRUE(changed.cpus.is_subset_of(CpuSet::range(0, 7)));
  }
}

TEST_F(MemoryResize, IsDeniedWithTheNumbersWhereOneNodeIsAllowed) {
  start({"--numa.policy=single-numa-node"});
  create_guaranteed("a", 2, 10);
  create_guaranteed("b", 2, 40);
  const OperationResult denied = resize("a", 2, 40);
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_EQ(denied.mems.to_string(), "0");
  EXPECT_THAT(denied.reason, HasSubstr("it cannot be resized"));
  EXPECT_THAT(denied.reason,
              HasSubstr("node 0 has 24.0 GiB of 64.0 GiB memory free, but the container needs 40.0 GiB"));
  // Nothing of it is booked.
  EXPECT_EQ(create_guaranteed("c", 2, 14).mems.to_string(), "0");
}

TEST_F(MemoryResize, IsDeniedAwayFromThePodsNodes) {
  start({"--numa.policy=restricted", "--numa.scope=pod"});
  const std::string pod_resources =
      R"(,"resources":{"cpu_request_milli":2000,"cpu_limit_milli":2000,"memory_request":10737418240,"memory_limit":10737418240})";
  run_pod("a", "guaranteed", pod_resources);
  EXPECT_EQ(ask("create", "a", 2, 10, "").mems.to_string(), "0");
  run_pod("b", "guaranteed");
  EXPECT_EQ(ask("create", "b", 2, 40, "").mems.to_string(), "0");
  EXPECT_EQ(resize("a", 2, 40).outcome, "denied");
  EXPECT_EQ(resize("a", 2, 20).outcome, "ok");
}

TEST_F(MemoryResize, GrowsBeyondANodeWhereRestrictedAllowsTwo) {
  start({"--numa.policy=restricted"});
  EXPECT_EQ(create_guaranteed("a", 2, 10).mems.to_string(), "0");
  EXPECT_EQ(resize("a", 2, 80).mems.to_string(), "0-1");
  EXPECT_EQ(resize("a", 2, 100).mems.to_string(), "0-1");
  EXPECT_EQ(resize("a", 2, 200).outcome, "denied");
}

TEST_F(MemoryResize, NeverHasMoreNodesThanRestrictedAllows) {
  start({"--numa.policy=restricted"}, "pack:3 numa:1(memory=68719476736) core:8 pu:1");
  ASSERT_EQ(create_guaranteed("a", 2, 80).mems.to_string(), "0-1");
  ASSERT_EQ(create_guaranteed("on-2", 2, 60).mems.to_string(), "2");
  ASSERT_EQ(create_guaranteed("on-1", 7, 20).mems.to_string(), "1");
  node_->apply(R"({"op":"remove_pod","pod":"on-2"})");
  // Nodes 0 and 2 have room, but with node 1, which it keeps, they are three.
  EXPECT_EQ(resize("a", 2, 110).outcome, "denied");
  EXPECT_EQ(resize("a", 2, 105).mems.to_string(), "0-1");
}

TEST_F(MemoryResize, GainsTheNearestNodesWithRoom) {
  start({}, "pack:4 numa:1(memory=68719476736) core:8 pu:1");
  ASSERT_EQ(create_guaranteed("a", 2, 10).mems.to_string(), "0");
  ASSERT_EQ(create_guaranteed("b", 4, 50).mems.to_string(), "0");
  ASSERT_EQ(create_guaranteed("c", 6, 64).mems.to_string(), "1");
  const NodeSet mems = resize("a", 2, 60).mems;
  EXPECT_EQ(mems.size(), 2U);
  EXPECT_FALSE(mems.contains(1)) << "it has no room";
}

TEST_F(MemoryResize, OnManyNodesGainsOnlyWhatItNeeds) {
  start({}, "pack:12 numa:1(memory=68719476736) core:4 pu:1");
  ASSERT_EQ(create_guaranteed("a", 2, 10).mems.to_string(), "0");
  const NodeSet grown = resize("a", 2, 100).mems;
  EXPECT_EQ(grown.size(), 2U);
  EXPECT_EQ(resize("a", 2, 190).mems.size(), 3U);
}

TEST_F(MemoryResize, OnManyNodesGainsSeveralAtOnceUnderRestricted) {
  start({"--numa.policy=restricted"}, "pack:12 numa:1(memory=68719476736) core:4 pu:1");
  ASSERT_EQ(create_guaranteed("a", 2, 60).mems.to_string(), "0");
  ASSERT_EQ(create_guaranteed("b", 2, 64).mems.to_string(), "1");
  const OperationResult grown = resize("a", 2, 190);
  EXPECT_EQ(grown.outcome, "ok") << grown.reason;
  EXPECT_EQ(grown.mems.size(), 3U);
  EXPECT_FALSE(grown.mems.contains(1)) << "it has no room";
}

TEST_F(MemoryResize, OnSeveralNodesCountsOnTheOthersWhatANodeHasNotLeft) {
  start({});
  create_guaranteed("a", 2, 2);
  create_guaranteed("b", 2, 60);
  EXPECT_EQ(resize("a", 2, 30).mems.to_string(), "0-1");
  // 90 GiB are bound to nodes 0 and 1, of which node 0 can hold no more than 64.
  const OperationResult c = create_guaranteed("c", 2, 49);
  EXPECT_NE(c.mems.to_string(), "1");
  EXPECT_EQ(create_guaranteed("d", 2, 38).mems.to_string(), "1");
}

TEST_F(MemoryResize, ToLessKeepsItsNodesAndGivesTheRestToOthers) {
  start({"--numa.policy=restricted"});
  create_guaranteed("a", 2, 80);
  const OperationResult less = resize("a", 2, 10);
  EXPECT_EQ(less.outcome, "ok");
  EXPECT_EQ(less.mems.to_string(), "0-1");
  EXPECT_EQ(create_guaranteed("b", 2, 59).outcome, "placed");
  EXPECT_EQ(create_guaranteed("c", 2, 59).outcome, "placed");
}

TEST_F(MemoryResize, IsBookedAndNeverDeniedWhereMemoryIsNotBound) {
  binds_ = false;
  start({"--numa.policy=single-numa-node"});
  create_guaranteed("a", 2, 10);
  create_guaranteed("b", 2, 40);
  const OperationResult grown = resize("a", 2, 60);
  EXPECT_EQ(grown.outcome, "ok");
  EXPECT_TRUE(grown.mems.empty());
  EXPECT_EQ(create_guaranteed("c", 2, 30).cpus.to_string(), "8-9");
}

/// Two nodes with 1,024 huge pages of 2 MiB each.
class HugePageResize : public MemoryResize {
 protected:
  HugePageResize() {
    HwlocXml xml;
    xml.huge_pages = R"(<page_type size="2097152" count="1024"/>)";
    const std::string packages = xml.package(0, 0, {{0}, {1}, {2}, {3}}) + xml.package(1, 1, {{4}, {5}, {6}, {7}});
    std::ofstream(file_) << xml.machine(0xff, 3, packages);
  }
  ~HugePageResize() override { std::filesystem::remove(file_); }

  static std::string pages(std::int64_t mib) { return fmt::format(R"(,"hugepages":{{"2Mi":{}}})", mib << 20); }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / fmt::format("topolet-huge-pages-{}.xml", ::getpid());
};

TEST_F(HugePageResize, AloneIsDecidedOnToo) {
  start({}, file_.string());
  ASSERT_EQ(create_guaranteed("a", 1, 1, pages(512)).mems.to_string(), "0");
  ASSERT_EQ(create_guaranteed("b", 1, 1, pages(1024)).mems.to_string(), "0");
  EXPECT_EQ(resize("a", 1, 1, pages(1024)).mems.to_string(), "0");
  EXPECT_EQ(resize("a", 1, 1, pages(2048)).mems.to_string(), "0-1");
  EXPECT_EQ(resize("a", 1, 1, pages(8192)).outcome, "denied");
  EXPECT_EQ(resize("a", 1, 1, pages(256)).outcome, "ok");
}

TEST_F(HugePageResize, IsDeniedWhereOneNodeIsAllowed) {
  start({"--numa.policy=single-numa-node"}, file_.string());
  ASSERT_EQ(create_guaranteed("a", 1, 1, pages(512)).mems.to_string(), "0");
  ASSERT_EQ(create_guaranteed("b", 1, 1, pages(1536)).mems.to_string(), "0");
  const OperationResult denied = resize("a", 1, 1, pages(1024));
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(denied.reason, HasSubstr("too few free huge pages"));
  // Fewer of the one that stays are room for the other.
  EXPECT_EQ(resize("b", 1, 1, pages(1024)).outcome, "ok");
  EXPECT_EQ(resize("a", 1, 1, pages(1024)).outcome, "ok");
}

TEST_F(MemoryResize, OfABurstableContainerFollowsItsRequest) {
  start({"--numa.policy=single-numa-node"});
  create_burstable("web", 10);
  create_guaranteed("b", 2, 40);
  EXPECT_EQ(resize_memory("web", 40).outcome, "denied");
  // The limit alone is no claim.
  EXPECT_EQ(node_->apply(R"({"op":"update","pod":"web","container":"main","memory_limit":42949672960})").outcome, "ok");
}

TEST_F(MemoryResize, IsStillKnownAfterARestart) {
  start({});
  create_guaranteed("a", 2, 10);
  create_guaranteed("b", 2, 40);
  resize("a", 2, 40);
  node_->apply(R"({"op":"restart"})");
  const OperationResult same = resize("a", 2, 40);
  EXPECT_EQ(same.mems.to_string(), "0-1");
  EXPECT_EQ(same.cpus.to_string(), "0-1");
}

TEST_F(MemoryResize, BeyondWhatThereIsIsNotBoundToTooLittle) {
  start({"--numa.policy=none"});
  ASSERT_EQ(create_guaranteed("a", 2, 2).mems.to_string(), "0");
  // As a new container: not bound. A running one cannot be unbound, but may use all nodes.
  EXPECT_EQ(resize("a", 2, 200).mems.to_string(), "0-1");
}

TEST_F(MemoryResize, TakesWhatIsKeptForFailedContainers) {
  start({}, "pack:1 numa:1(memory=68719476736) core:8 pu:1");
  create_guaranteed("c", 2, 40);
  create_guaranteed("p", 2, 8);
  node_->apply(R"({"op":"exit","pod":"c","container":"main","exit_code":1})");
  EXPECT_EQ(resize("p", 2, 50).outcome, "ok");
}

TEST_F(MemoryResize, UnderRestrictedCountsTheNodesThatANewOneWouldNeed) {
  start({"--numa.policy=restricted", "--numa.reserved-memory=0:48Gi"});
  ASSERT_EQ(create_guaranteed("p", 2, 8).mems.to_string(), "0");
  const OperationResult denied = resize("p", 2, 20);
  EXPECT_EQ(denied.outcome, "denied") << "node 1 alone could have it";
  EXPECT_THAT(denied.reason,
              HasSubstr("node 0 has 16.0 GiB of 16.0 GiB memory free, but the container needs 20.0 GiB"));
}

TEST_F(MemoryResize, OfABurstableContainerWhoseRequestIsNotKnownCountsTheLimit) {
  start({"--numa.policy=single-numa-node"});
  create_burstable("web", 10);
  create_guaranteed("b", 2, 40);
  EXPECT_EQ(
      node_
          ->apply(
              R"({"op":"update","pod":"web","container":"main","memory_request":52428800,"memory_limit":42949672960})")
          .outcome,
      "denied");
}

TEST_F(MemoryResize, WithMoreCpusIsDecidedOnTogether) {
  start({});
  create_guaranteed("a", 2, 10);
  create_guaranteed("b", 2, 40);
  const OperationResult grown = resize("a", 3, 40);
  EXPECT_EQ(grown.cpus.size(), 3U);
  EXPECT_EQ(grown.mems.to_string(), "0-1");
}

TEST_F(MemoryResize, WithAnotherNumberOfCpusNeverHasMoreNodesThanRestrictedAllows) {
  for (const int milli : {1000, 3000, 2500}) {
    start({"--numa.policy=restricted"}, "pack:3 numa:1(memory=68719476736) core:8 pu:1");
    ASSERT_EQ(create_guaranteed("a", 2, 80).mems.to_string(), "0-1");
    ASSERT_EQ(create_guaranteed("on-2", 2, 60).mems.to_string(), "2");
    ASSERT_EQ(create_guaranteed("on-1", 7, 20).mems.to_string(), "1");
    node_->apply(R"({"op":"remove_pod","pod":"on-2"})");
    const OperationResult denied = resize_both("a", milli, 110);
    EXPECT_EQ(denied.outcome, "denied") << milli;
    EXPECT_THAT(denied.reason, HasSubstr("the nodes of the memory that the container keeps"));
    EXPECT_EQ(denied.mems.to_string(), "0-1");
    EXPECT_EQ(resize_both("a", milli, 105).mems.to_string(), "0-1") << milli;
  }
}

TEST_F(MemoryResize, IntoThePoolStaysWithItsMemory) {
  for (const char* policy : {"best-effort", "restricted", "single-numa-node"}) {
    start({std::string("--numa.policy=") + policy});
    ASSERT_EQ(create_guaranteed("a", 2, 10).mems.to_string(), "0");
    ASSERT_EQ(create_guaranteed("b", 2, 10).mems.to_string(), "0");
    // Node 1 is emptier, but node 0 has room as well.
    const OperationResult shared = resize_both("a", 2500, 20);
    EXPECT_EQ(shared.outcome, "ok") << shared.reason;
    EXPECT_EQ(shared.mode, "shared");
    EXPECT_TRUE(shared.cpus.is_subset_of(CpuSet::range(0, 7))) << policy;
    EXPECT_EQ(shared.mems.to_string(), "0") << policy;
  }
}

TEST_F(MemoryResize, IntoThePoolIsDeniedWhereTheMemoryHasNoRoomOnOneNode) {
  start({"--numa.policy=single-numa-node"});
  create_guaranteed("a", 2, 10);
  create_guaranteed("b", 2, 10);
  const OperationResult denied = resize_both("a", 2500, 60);
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_EQ(denied.mode, "exclusive");
  EXPECT_THAT(denied.reason, HasSubstr("the container needs 60.0 GiB"));
  // On the nodes that it has it may become smaller and share.
  EXPECT_EQ(resize_both("a", 1500, 8).outcome, "ok");
}

TEST_F(MemoryResize, WithMoreCpusOnManyNodesStaysWithItsMemory) {
  start({"--numa.policy=restricted"}, "pack:12 numa:1(memory=68719476736) core:4 pu:1");
  ASSERT_EQ(create_guaranteed("a", 2, 60).mems.to_string(), "0");
  for (int i = 1; i < 12; ++i) {
    ASSERT_EQ(create_guaranteed(fmt::format("b{}", i), 2, 64).mems.to_string(), std::to_string(i));
  }
  // Nodes 0 and 6 are no neighbours, so that nobody thinks of them as one place unless the container is there.
  node_->apply(R"({"op":"remove_pod","pod":"b6"})");
  ASSERT_EQ(resize("a", 2, 100).mems.to_string(), "0,6");
  const OperationResult grown = resize("a", 3, 120);
  EXPECT_EQ(grown.outcome, "ok") << grown.reason;
  EXPECT_EQ(grown.cpus.to_string(), "0-2");
  EXPECT_EQ(grown.mems.to_string(), "0,6");
}

TEST_F(MemoryResize, LeavesWhatIsWithheldAsItIs) {
  node_.emplace("pack:2 numa:1(memory=68719476736) core:4 pu:2",
                std::vector<std::string>{"--plugins.enable=numa", "--plugins.enable=smt", "--numa.memory=bind",
                                         "--smt.isolate-siblings=exclusive"});
  const OperationResult a = create_guaranteed("a", 1, 10);
  create_guaranteed("b", 1, 40);
  const OperationResult grown = resize("a", 1, 40);
  EXPECT_EQ(grown.outcome, "ok");
  EXPECT_EQ(grown.cpus, a.cpus);
  EXPECT_EQ(grown.withheld, a.withheld);
  EXPECT_EQ(grown.mems.to_string(), "0-1");
}

}  // namespace
}  // namespace topolet::simulate
