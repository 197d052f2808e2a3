// The state database has a schema that is older than the first one that is brought forward: it is set aside, and
// nobody moves.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "store/database.hpp"
#include "tests/daemon/core_rig.hpp"

namespace topolet::daemon {
namespace {

using testing::CoreRig;

void make_older(const std::string& file) {
  auto database = store::Database::open(file, store::Database::Access::kReadWrite);
  ASSERT_TRUE(database.has_value()) << database.error().message;
  ASSERT_TRUE(database->execute("PRAGMA user_version = 9", "write as an older version"));
}

TEST(OlderStore, IsSetAsideAtAStartAndNobodyMoves) {
  CoreRig rig;
  const std::string alone = rig.run({.pod = "alone", .cpus = 1});
  const std::string shared = rig.run({.pod = "shared"});
  const auto alone_before = rig.runtime().row(alone).ran_on;
  const auto shared_before = rig.runtime().row(shared).ran_on;
  const std::string cpus = rig.held("alone");
  rig.stop();
  make_older(rig.file("state/state.db"));
  rig.start();
  rig.list();
  ASSERT_TRUE(CoreRig::eventually([&] { return rig.held("alone") == cpus && !rig.held("shared").empty(); }));
  EXPECT_TRUE(std::filesystem::exists(rig.file("state/state.db.too-old-1")));
  const std::string next = rig.run({.pod = "next", .cpus = 1});
  EXPECT_NE(rig.runtime().row(next).cpus, cpus);
  EXPECT_EQ(rig.runtime().row(alone).ran_on, alone_before);
  EXPECT_EQ(rig.query("SELECT mode FROM current_placements WHERE pod = 'alone'"),
            (std::vector<std::string>{"exclusive"}));
  // It leaves the CPU of the next one, and does nothing else.
  EXPECT_EQ(rig.runtime().row(shared).ran_on.size(), shared_before.size() + 1);
}

}  // namespace
}  // namespace topolet::daemon
