#include "core/engine/state/write_transition.hpp"
#include "tests/store/scratch.hpp"

namespace topolet::engine {
namespace {

class NotedGenerationTest : public store::StoreTest {
 protected:
  /// Writes it as the writer does, and what the next start says is missing.
  std::uint64_t newest_lost_generation(const Transition& transition) const {
    {
      const auto store = open();
      EXPECT_TRUE(store->begin().has_value());
      const Status written = store->savepoint([&] { return write(*store, transition); });
      EXPECT_TRUE(written.has_value()) << store::message(written);
      EXPECT_TRUE(store->commit().has_value());
      store->write_generation_file(transition.generation);
    }
    return open()->report().newest_lost_generation;
  }
};

TEST_F(NotedGenerationTest, IsThereThoughNoRowOfTheAuditTellsOfIt) {
  Allocation allocation;
  allocation.decision = 1;
  Transition placed;
  placed.generation = 5;
  Change& placer = placed.changes.emplace_back();
  placer.after = allocation;
  placer.audit = AuditEntry{AuditEvent::kPlaced, "fits"};
  EXPECT_EQ(newest_lost_generation(placed), 0U);

  Allocation started = allocation;
  started.phase = Phase::kStarting;
  started.generation = 6;
  Transition start;
  start.generation = 6;
  Change& starting = start.changes.emplace_back();
  starting.before = allocation;
  starting.after = started;
  EXPECT_EQ(newest_lost_generation(start), 0U);

  Transition forgotten;
  forgotten.generation = 7;
  forgotten.pods.push_back({"sandbox-1", std::nullopt});
  EXPECT_EQ(newest_lost_generation(forgotten), 0U);
  EXPECT_EQ(*open()->last_generation(), 7U);
}

}  // namespace
}  // namespace topolet::engine
