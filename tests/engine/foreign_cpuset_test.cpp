#include "core/engine/handlers/foreign_cpuset.hpp"

#include <gmock/gmock.h>

#include "tests/engine/handler_test.hpp"

namespace topolet::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ForeignCpusetTest : public HandlerTest {
 protected:
  /// `a`, which gets CPUs 0 and 1 alone, is being created.
  ForeignCpusetTest() { begin({exclusive("a", {0, 1}, Phase::kPending)}); }

  operations::ForeignCpuset set_by(const std::string& plugin, const CpuSet& cpus) const {
    const placement::ContainerKey& key = find("a")->workload.key;
    operations::ForeignCpuset found;
    found.container_id = "c-a";
    found.sandbox_id = key.sandbox_id;
    found.pod_uid = key.pod_uid;
    found.container = key.name;
    found.cpus_plugin = plugin;
    found.cpus = cpus;
    return found;
  }

  /// Returns the refusal; empty if the create is to pass.
  std::string judge(const operations::ForeignCpuset& found, bool refuses) {
    std::optional<std::optional<std::string>> verdict;
    judge_foreign_cpuset(deps(), found, refuses, [&](std::optional<std::string> refusal) { verdict = refusal; });
    EXPECT_FALSE(verdict.has_value() && find("a")->overruled) << "it is told before it is durable";
    loop_.run();
    EXPECT_TRUE(verdict.has_value());
    return verdict.value_or(std::nullopt).value_or("");
  }
};

TEST_F(ForeignCpusetTest, IsToldWithThePluginsName) {
  EXPECT_EQ(judge(set_by("10-koordlet", {4, 5}), false), "");
  ASSERT_TRUE(find("a")->overruled);
  EXPECT_EQ(find("a")->overruled->plugin, "10-koordlet");
  EXPECT_EQ(find("a")->overruled->cpus, (CpuSet{4, 5}));
  EXPECT_EQ(seen_mode(*find("a")), "overruled");
  EXPECT_EQ(find("a")->placement.cpus, (CpuSet{0, 1})) << "that is what it should have";
}

TEST_F(ForeignCpusetTest, KeepsOthersOffTheCpusThatThePluginSets) {
  judge(set_by("10-koordlet", {4, 5}), false);
  EXPECT_EQ(committer_->ledger().barred_for(nullptr), (CpuSet{4, 5}));
}

TEST_F(ForeignCpusetTest, IsRefusedWithTheWayOut) {
  EXPECT_EQ(judge(set_by("10-koordlet", {4, 5}), true),
            "topolet: NRI plugin '10-koordlet' gives " + display_name(find("a")->workload) +
                " CPUs 4-5 instead of 0-1 (nri.guard = deny): switch that off in the plugin (koordlet: feature gate "
                "CPUSetAllocator=false), remove it, or use nri.guard = warn");
}

TEST_F(ForeignCpusetTest, PassesWhereThePluginSetsWhatTopoletDoes) {
  EXPECT_EQ(judge(set_by("10-koordlet", {0, 1}), true), "");
  EXPECT_FALSE(find("a")->overruled);
  EXPECT_THAT(take_transitions(), IsEmpty());
}

TEST_F(ForeignCpusetTest, SaysOfMemoryNodesOnlyThatTheyAreSet) {
  operations::ForeignCpuset found = set_by("10-koordlet", {});
  found.cpus_plugin.reset();
  found.mems_plugin = "20-memory";
  found.mems = NodeSet{1};
  EXPECT_THAT(judge(found, true), HasSubstr("NRI plugin '20-memory' gives"));
  EXPECT_FALSE(find("a")->overruled) << "its CPUs are topolet's";
}

TEST_F(ForeignCpusetTest, LeavesAloneWhatTopoletHasNotPlaced) {
  operations::ForeignCpuset found = set_by("10-koordlet", {4, 5});
  found.container = "other";
  EXPECT_EQ(judge(found, true), "");
  EXPECT_THAT(take_transitions(), IsEmpty());
}

TEST_F(ForeignCpusetTest, ShowsNoControlCharactersOfAName) {
  EXPECT_THAT(judge(set_by("10-\n\x1b[1m", {4, 5}), true), ::testing::Not(HasSubstr("\n")));
}

TEST_F(ForeignCpusetTest, IsOverOnceTheKernelHasShownTopoletsCpusForAMinute) {
  loop_.advance(std::chrono::seconds(1));
  judge(set_by("10-koordlet", {4, 5}), false);
  const placement::ContainerKey key = find("a")->workload.key;
  commit(event::CreateConfirmed{key, "c-a", ContainerCpuset{CpuSet{0, 1}, {}}});
  commit(event::SeenInKernel{key, {0, 1}, true});
  loop_.advance(kOverruledLinger);
  commit(event::SeenInKernel{key, {0, 1}, true});
  EXPECT_FALSE(find("a")->overruled);
}

}  // namespace
}  // namespace topolet::engine
