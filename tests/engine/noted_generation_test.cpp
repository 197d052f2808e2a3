#include "core/engine/state/codec.hpp"
#include "tests/store/scratch.hpp"

namespace topolet::engine {
namespace {

class NotedGenerationTest : public StoreTest {
 protected:
  /// Writes it as the writer does, and what the next start says is missing.
  std::uint64_t lost_after(const Transition& transition) const {
    {
      const auto store = open();
      EXPECT_TRUE(store->begin().ok());
      const Status written = store->step([&] { return write(*store, transition); });
      EXPECT_TRUE(written.ok()) << message(written);
      EXPECT_TRUE(store->commit().ok());
      store->note_generation(transition.generation);
    }
    return open()->report().lost_after;
  }
};

TEST_F(NotedGenerationTest, IsThereThoughNoRowOfTheAuditTellsOfIt) {
  Allocation allocation;
  allocation.decision = 1;
  Transition placed;
  placed.generation = 5;
  Change& placing = placed.changes.emplace_back();
  placing.after = allocation;
  placing.audit = Audit{"placed", "fits"};
  EXPECT_EQ(lost_after(placed), 0U);

  Allocation started = allocation;
  started.phase = Phase::kStarting;
  started.generation = 6;
  Transition start;
  start.generation = 6;
  Change& starting = start.changes.emplace_back();
  starting.before = allocation;
  starting.after = started;
  EXPECT_EQ(lost_after(start), 0U);

  Transition forgotten;
  forgotten.generation = 7;
  forgotten.pods.push_back({"sandbox-1", std::nullopt});
  EXPECT_EQ(lost_after(forgotten), 0U);
  EXPECT_EQ(*open()->last_generation(), 7U);
}

}  // namespace
}  // namespace topolet::engine
