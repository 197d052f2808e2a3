// What policies set besides the CPUs, put together.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/decision.hpp"
#include "core/placement/policy.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using testing::besteffort;
using testing::guaranteed;
using testing::TestNode;

/// Has no preference, and adjusts as it is told.
class Adjuster : public Policy {
 public:
  Adjuster(std::string name, Result<Adjustment> adjustment)
      : name_(std::move(name)), adjustment_(std::move(adjustment)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    return std::vector<Verdict>(request.candidates.size());
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override { return Pick(); }
  Result<Adjustment> adjust(const PolicyRequest&, const ChosenPlacement& chosen) override {
    seen = chosen;
    return adjustment_;
  }

  ChosenPlacement seen;

 private:
  const std::string name_;
  const Result<Adjustment> adjustment_;
};

TEST(DecideAdjust, ShowsWhatWasChosenAndTakesWhatIsSaid) {
  TestNode node("numa:2 core:2 pu:1");
  const auto adjuster = std::make_shared<Adjuster>(
      "a", Adjustment{NodeSet{1}, {{{"GPU", "0"}}, {{"seen", "yes"}}}, {}, "memory beside the device"});
  node.votes = {{adjuster, 1, false}};
  Workload workload = guaranteed("web", 1);
  workload.kubelet_mems = NodeSet{1};
  const Decision decision = node.ask(workload);
  EXPECT_EQ(adjuster->seen.placement.mode, Mode::kExclusive);
  EXPECT_EQ(adjuster->seen.placement.cpus, CpuSet{0});
  EXPECT_EQ(adjuster->seen.memory, NodeSet{1}) << "the kubelet's bound";
  EXPECT_EQ(decision.placement.mems, NodeSet{1});
  EXPECT_EQ(decision.placement.added, (AddedFields{{{"GPU", "0"}}, {{"seen", "yes"}}}));
  EXPECT_NE(decision.reason.find("a: memory beside the device"), std::string::npos) << decision.reason;
}

TEST(DecideAdjust, IntersectsMemoryAndDropsWhatCannotBe) {
  TestNode node("numa:3 core:2 pu:1");
  const auto memory = [](const NodeSet& nodes) { return Adjustment{nodes, {}, {}, ""}; };
  node.votes = {{std::make_shared<Adjuster>("a", memory(NodeSet{0, 1})), 1, false},
                {std::make_shared<Adjuster>("b", memory(NodeSet{1, 2})), 1, false},
                {std::make_shared<Adjuster>("c", memory(NodeSet{2})), 1, false},
                {std::make_shared<Adjuster>("d", memory(NodeSet{1, 7})), 1, false},
                {std::make_shared<Adjuster>("e", memory({})), 1, false}};
  const Decision decision = node.ask(besteffort("web"));
  EXPECT_EQ(decision.placement.mems, NodeSet{1});
  EXPECT_EQ(decision.verdicts.dropped,
            (std::vector<std::string>{"c: binding memory to node 2: it is bound to node 1 already",
                                      "d: binding memory to nodes 1,7: the container's memory may be on nodes 0-2 only",
                                      "e: binding memory to no node: it is bound to node 1 already"}));
}

TEST(DecideAdjust, TellsEachUsedDeviceOnce) {
  TestNode node("numa:2 core:2 pu:1");
  const auto using_devices = [](const std::string& name, std::vector<std::string> devices) {
    Adjustment adjustment;
    adjustment.used_devices = std::move(devices);
    return Vote{std::make_shared<Adjuster>(name, std::move(adjustment)), 1, false};
  };
  node.votes = {using_devices("a", {"nvme1", "0000:41:00.0"}), using_devices("b", {"0000:41:00.0"})};
  EXPECT_EQ(node.ask(besteffort("web")).used_devices, (std::vector<std::string>{"0000:41:00.0", "nvme1"}));
}

TEST(DecideAdjust, PutsTheTagsOfAPolicyInThePlaceOfThoseItSetBefore) {
  TestNode node("numa:2 core:2 pu:1");
  using Tags = std::vector<std::pair<std::string, std::string>>;
  const auto tagging = [](const std::string& name, Tags tags) {
    Adjustment adjustment;
    adjustment.added.tags = std::move(tags);
    return Vote{std::make_shared<Adjuster>(name, std::move(adjustment)), 1, false};
  };
  node.votes = {tagging("b", {{"b/z", "2"}, {"b/x", "1"}}), tagging("a", {{"a/x", ""}}), tagging("silent", {})};
  Workload workload = besteffort("web");
  const Decision first = node.ask(workload);
  ASSERT_TRUE(first.tags.has_value());
  EXPECT_EQ(*first.tags, (SharedStringMap{{"a/x", ""}, {"b/x", "1"}, {"b/z", "2"}}));
  EXPECT_EQ(first.placement.added.tags, (Tags{{"a/x", ""}, {"b/x", "1"}, {"b/z", "2"}}));
  workload.tags = {{"a/old", "1"}, {"b/old", "1"}, {"silent/kept", "1"}, {"b2/kept", "1"}};
  const Decision anew = node.ask(workload);
  EXPECT_EQ(*anew.tags,
            (SharedStringMap{{"a/x", ""}, {"b/x", "1"}, {"b/z", "2"}, {"b2/kept", "1"}, {"silent/kept", "1"}}));
  node.votes = {tagging("silent", {})};
  EXPECT_FALSE(node.ask(workload).tags.has_value()) << "they stay";
}

/// As policies say it, one each, and what becomes of it.
class FilesAndClasses : public ::testing::Test {
 protected:
  void say(const std::string& name, const std::string& memory_high, const std::string& rdt_class = "") {
    Adjustment adjustment;
    if (!memory_high.empty()) adjustment.added.unified = {{"memory.high", memory_high}};
    adjustment.added.rdt_class = rdt_class;
    node_.votes.push_back({std::make_shared<Adjuster>(name, std::move(adjustment)), 1, false});
  }

  TestNode node_{"numa:1 core:2 pu:1"};
  Workload workload_ = besteffort("web");
};

TEST_F(FilesAndClasses, AreThoseOfTheFirstPolicyThatNamesSome) {
  say("a", "4096", "gold");
  say("b", "8192", "silver");
  const Decision decision = node_.ask(workload_);
  EXPECT_EQ(decision.unified, (SharedStringMap{{"memory.high", "4096"}}));
  EXPECT_EQ(decision.placement.added.rdt_class, "gold");
  EXPECT_EQ(decision.verdicts.dropped,
            (std::vector<std::string>{"b: cgroup file memory.high: another plugin has set it",
                                      "b: RDT class silver: another plugin has set one"}));
}

TEST_F(FilesAndClasses, AreThePodsWhereItNamesSome) {
  workload_.kubelet_unified = {{"memory.high", "1"}};
  workload_.pod_annotations = {{"rdt.resources.beta.kubernetes.io/container.web", "bronze"}};
  say("a", "4096", "gold");
  const Decision decision = node_.ask(workload_);
  EXPECT_TRUE(decision.unified.empty());
  EXPECT_EQ(decision.placement.added, AddedFields());
  EXPECT_EQ(decision.verdicts.dropped, (std::vector<std::string>{"a: cgroup file memory.high: the pod sets it itself",
                                                                 "a: RDT class gold: the pod sets one itself"}));
}

TEST_F(FilesAndClasses, StayWithinTheMemoryLimit) {
  workload_.demand.memory_limit_bytes = 8192;
  say("a", "8193");
  say("b", "8192");
  const Decision decision = node_.ask(workload_);
  EXPECT_EQ(decision.unified, (SharedStringMap{{"memory.high", "8192"}}));
  EXPECT_EQ(decision.verdicts.dropped,
            (std::vector<std::string>{"a: memory.high: it would be more than the memory limit"}));
  node_.votes.clear();
  say("a", "max");
  EXPECT_EQ(node_.ask(workload_).unified, (SharedStringMap{{"memory.high", "max"}}));
}

AddedFields settings(const std::optional<MemoryPolicy>& memory_policy, const std::optional<Scheduler>& scheduler = {},
                     const std::optional<IoPriority>& io_priority = {}) {
  AddedFields added;
  added.memory_policy = memory_policy;
  added.scheduler = scheduler;
  added.io_priority = io_priority;
  return added;
}

Vote setting(const std::string& name, const AddedFields& added, std::optional<NodeSet> mems = {}) {
  Adjustment adjustment;
  adjustment.mems = std::move(mems);
  adjustment.added = added;
  return {std::make_shared<Adjuster>(name, std::move(adjustment)), 1, false};
}

TEST(DecideAdjust, TakesTheSettingsOfTheFirstPolicyThatHasSome) {
  TestNode node("numa:2 core:2 pu:1");
  const MemoryPolicy interleave{MemoryMode::kInterleave, NodeSet{0, 1}};
  const Scheduler batch{SchedulerClass::kBatch, 5};
  const IoPriority idle{IoClass::kIdle, 0};
  node.votes = {setting("a", settings({}, batch)), setting("b", settings(interleave, Scheduler{}, idle)),
                setting("c", settings(MemoryPolicy{MemoryMode::kLocal}, {}, IoPriority{}))};
  const Decision decision = node.ask(besteffort("web"));
  EXPECT_EQ(decision.placement.added, settings(interleave, batch, idle));
  EXPECT_EQ(decision.verdicts.dropped,
            (std::vector<std::string>{"b: scheduler class other, nice 0: another plugin has set one",
                                      "c: I/O priority best-effort 0: another plugin has set one",
                                      "c: memory policy local: another plugin has set one"}));
}

TEST(DecideAdjust, DropsAMemoryPolicyWithNodesThatTheContainerMayNotUse) {
  TestNode node("numa:3 core:2 pu:1");
  const auto on = [](const NodeSet& nodes, bool relative = false) {
    return settings(MemoryPolicy{MemoryMode::kInterleave, nodes, false, relative});
  };
  node.votes = {setting("a", on({0, 1})), setting("b", on({2})), setting("c", {}, NodeSet{1, 2})};
  const Decision bound = node.ask(besteffort("web"));
  EXPECT_EQ(bound.placement.added, on({2})) << "c, which is asked last, binds the memory";
  EXPECT_EQ(
      bound.verdicts.dropped,
      std::vector<std::string>{"a: memory policy interleave 0-1: the container's memory may be on nodes 1-2 only"});
  Workload workload = besteffort("web");
  workload.kubelet_mems = NodeSet{1};
  node.votes = {setting("a", on({0, 1})), setting("b", on({0, 1}, true))};
  EXPECT_EQ(node.ask(workload).placement.added, on({0, 1}, true)) << "these are positions among what is open";
}

TEST(DecideAdjust, KeepsMemoryOffNodesThatHaveNone) {
  TestNode node("numa:2 core:2 pu:1");
  auto without = std::make_shared<topology::Topology>(*node.topology);
  without->nodes[1].has_memory = false;
  node.topology = without;
  node.votes = {{std::make_shared<Adjuster>("a", Adjustment{NodeSet{1}, {}, {}, ""}), 1, false}};
  EXPECT_TRUE(node.ask(besteffort("web")).placement.mems.empty());
}

TEST(DecideAdjust, LetsThePodAndThenTheFirstPluginHaveTheLastWord) {
  TestNode node("numa:1 core:2 pu:1");
  const auto sets = [](const std::string& value) {
    return Adjustment{std::nullopt, {{{"MINE", value}, {"NEW", value}}, {{"note", value}, {"kept", value}}}, {}, ""};
  };
  node.votes = {{std::make_shared<Adjuster>("a", sets("a")), 1, false},
                {std::make_shared<Adjuster>("b", sets("b")), 1, false}};
  Workload workload = besteffort("web");
  workload.env = {{"MINE", "secret"}};
  workload.annotations = {{"kept", "as it is"}};
  const Decision decision = node.ask(workload);
  EXPECT_EQ(decision.placement.added, (AddedFields{{{"NEW", "a"}}, {{"note", "a"}}}));
  EXPECT_EQ(decision.verdicts.dropped,
            (std::vector<std::string>{
                "a: variable MINE: the pod sets it itself", "a: annotation kept: the pod sets it itself",
                "b: variable MINE: the pod sets it itself", "b: variable NEW: another plugin has set it",
                "b: annotation note: another plugin has set it", "b: annotation kept: the pod sets it itself"}));
}

TEST(DecideAdjust, CostsALostVoteOrADenialWhereItFails) {
  TestNode node("numa:1 core:2 pu:1");
  node.votes = {{std::make_shared<Adjuster>("a", Error{Code::kUnavailable, "no idea"}), 1, false}};
  const Decision open = node.ask(besteffort("web"));
  EXPECT_FALSE(open.denied);
  EXPECT_EQ(open.lost_votes, std::vector<std::string>{"a"});
  node.votes[0].fail_closed = true;
  EXPECT_TRUE(node.ask(besteffort("web")).denied);
}

}  // namespace
}  // namespace topolet::placement
