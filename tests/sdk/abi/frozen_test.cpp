// Today's host, and a plugin that was built with the frozen headers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "tests/plugin/plugins.hpp"

namespace topolet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(FrozenPlugin, ReadsTodaysRequest) {
  const auto frozen = plugin::start_plugin(TOPOLET_FROZEN_DIR, "frozen", {{"greeting", "good day"}});
  ASSERT_NE(frozen, nullptr);
  EXPECT_THAT(frozen->capabilities(), ElementsAre("topolet.score/1", "topolet.pick/1"));
  const auto request = plugin::two_node_request();
  request->workload.demand.cpu_request_milli = 2000;
  request->ledger.pool.erase(0);
  const auto verdicts = frozen->score(plugin::abi_view(*request));
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  ASSERT_THAT(*verdicts, SizeIs(3));
  EXPECT_EQ(
      (*verdicts)[0].reason,
      "good day 2 exclusive=1 candidate 0 of kind 0 from cpu 0 free 3 distance 10; pu 7 core 3 node 1; node 0 bytes "
      "1073741824 far 21; web attempt 2 milli 2000; allowed 8 entries 0 cpu -1");
  EXPECT_EQ((*verdicts)[1].score, 10);
  EXPECT_THAT((*verdicts)[1].reason, HasSubstr("candidate 1 of kind 0 from cpu 4 free 4 distance 10;"));
  EXPECT_EQ((*verdicts)[2].kind, placement::Verdict::Kind::kReject);
  EXPECT_THAT((*verdicts)[2].reason, HasSubstr("candidate 2 of kind 2 from cpu 0 free 7 distance 62;"));
}

TEST(FrozenPlugin, ReadsTodaysLedger) {
  const auto frozen = plugin::start_plugin(TOPOLET_FROZEN_DIR, "frozen");
  const auto request = plugin::two_node_request();
  placement::LedgerEntry entry;
  entry.key = {"uid-2", "batch", 0, "sandbox-2"};
  entry.placement.mode = placement::Mode::kExclusive;
  entry.placement.cpus = CpuSet{5};
  request->ledger.entries.push_back(entry);
  const auto verdicts = frozen->score(plugin::abi_view(*request));
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  EXPECT_THAT(verdicts->front().reason, HasSubstr("entries 1 cpu 5"));
}

TEST(FrozenPlugin, PicksForTodaysHost) {
  const auto frozen = plugin::start_plugin(TOPOLET_FROZEN_DIR, "frozen");
  const auto request = plugin::two_node_request();
  const auto pick = frozen->pick(plugin::abi_view(*request), 1, CpuSet{4, 5, 6}, 2);
  ASSERT_TRUE(pick) << pick.error().message;
  EXPECT_EQ(pick->reason, "candidate 1, 3 usable, 3 candidates");
  EXPECT_THAT(pick->order, ElementsAre(5, 4));
}

}  // namespace
}  // namespace topolet
