#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/clock.hpp"
#include "store/database.hpp"
#include "tests/cli/run_topolet.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kHour = 60 * 60 * 1000;

/// Containers h1 to h5, each of which ended so many hours ago, and one that runs.
class PruneTest : public ::testing::Test {
 protected:
  PruneTest() {
    const auto store = state_.open();
    for (std::int64_t hours = 1; hours <= 5; ++hours) {
      const std::int64_t decision = place(*store, "h" + std::to_string(hours));
      const store::EndedRow ended{decision, now_ms_ - hours * kHour, 1, "exited"};
      EXPECT_TRUE(store->add(ended).has_value());
    }
    place(*store, "runs");
  }

  std::int64_t place(store::Store& store, const std::string& container) const {
    store::DecidedRow row;
    row.at_ms = now_ms_ - 10 * kHour;
    row.event = "placed";
    row.pod_namespace = "shop";
    row.pod_name = "till";
    row.container = container;
    row.mode = "exclusive";
    row.cpus = {1};
    row.reason = std::string(2000, 'r');
    const auto decision = store.add(row);
    EXPECT_TRUE(
        store
            .put_allocation(
                *decision,
                {{"state", "bound"}, {"container_id", ""}, {"cpus", "1"}, {"pending_since_ms", std::int64_t{1}}})
            .has_value());
    return *decision;
  }
  std::string containers() const {
    return state_.query("SELECT group_concat(container, '+') AS there FROM decided", {"--format", "csv"}).text;
  }

  StateDir state_;
  std::int64_t now_ms_ = Clock().wall().count();
};

TEST_F(PruneTest, SaysWhatItWouldDeleteAndDeletesIt) {
  EXPECT_THAT(state_.topolet({"prune", "--older-than", "150m", "--dry-run"}).text,
              AllOf(HasSubstr("would delete 3 decisions that had ended before 20"), HasSubstr("and keep 3")));
  EXPECT_THAT(containers(), HasSubstr("h1+h2+h3+h4+h5+runs"));
  const Said said = state_.topolet({"prune", "--older-than", "150m"});
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, AllOf(HasSubstr("deleted 3 decisions"), HasSubstr("MiB in use")));
  EXPECT_THAT(containers(), HasSubstr("there\r\nh1+h2+runs\r\n"));
  EXPECT_THAT(state_.topolet({"prune", "--older-than", "0s"}).text, HasSubstr("deleted 2 decisions"));
  EXPECT_THAT(containers(), HasSubstr("there\r\nruns\r\n"));
}

TEST_F(PruneTest, TellsWhoAsksForATimeThatIsKeptNoMore) {
  EXPECT_EQ(state_.topolet({"at", "6h"}).code, 0);
  ASSERT_EQ(state_.topolet({"prune", "--older-than", "150m"}).code, 0);
  const Said said = state_.topolet({"at", "6h"});
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.text, AllOf(HasSubstr("is not known any more"), HasSubstr("daemon.keep")));
  EXPECT_THAT(state_.topolet({"at", "90m"}).text, AllOf(HasSubstr("h1"), HasSubstr("runs"), Not(HasSubstr("h2"))));
  EXPECT_EQ(state_.topolet({"moves", "--since", "6h"}).text, "no container was moved in that time\n");
}

TEST_F(PruneTest, TakesTheAgeFromTheConfiguration) {
  std::ofstream(state_.file("topolet.conf")) << "[daemon]\nkeep = 3h\nstate-dir = " << state_.path() << '\n';
  EXPECT_THAT(topolet({"prune", "--dry-run", "--config", state_.file("topolet.conf")}).text,
              HasSubstr("would delete 3 decisions"));
  std::ofstream(state_.file("topolet.conf")) << "[daemon]\nkeep = 0\nstate-dir = " << state_.path() << '\n';
  EXPECT_THAT(topolet({"prune", "--dry-run", "--config", state_.file("topolet.conf")}).text,
              HasSubstr("as in --older-than 7d"));
  EXPECT_THAT(state_.topolet({"prune", "--older-than", "soon"}).text, HasSubstr("--older-than"));
}

TEST_F(PruneTest, CompactsAFileOfAnOlderTopolet) {
  // Which does not shrink by itself.
  {
    auto database = store::Database::open(state_.database(), store::Database::Access::kReadWrite);
    ASSERT_TRUE(
        database->execute("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM", "age").has_value());
  }
  {
    const auto store = state_.open();
    for (int i = 0; i < 500; ++i) {
      const store::EndedRow ended{place(*store, "more"), now_ms_ - kHour, 1, "exited"};
      ASSERT_TRUE(store->add(ended).has_value());
    }
    EXPECT_THAT(state_.topolet({"prune", "--older-than", "30m", "--compact"}).text,
                AllOf(HasSubstr("cannot compact"), HasSubstr("topoletd")));
  }
  const auto before = fs::file_size(state_.database());
  const Said said = state_.topolet({"prune", "--older-than", "30m", "--compact"});
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_LT(fs::file_size(state_.database()), before / 2);
  EXPECT_THAT(state_.query("PRAGMA integrity_check").text, HasSubstr("\nok\n"));
  EXPECT_THAT(containers(), HasSubstr("there\r\nruns\r\n"));
  EXPECT_EQ(state_.open()->allocations()->size(), 1U) << "a topoletd can start with it";
}

TEST(Prune, WorksBesideARunningDaemon) {
  DaemonRig rig;
  rig.configure("enable = nonsense\n[nonsense]\nanswer = none");
  ASSERT_TRUE(rig.start()) << rig.log();
  ASSERT_TRUE(rig.create("web").ok());
  const Said said = topolet({"prune", "--older-than", "0s", "--config", rig.config()});
  EXPECT_EQ(said.code, 0) << said.text;
  ASSERT_TRUE(rig.create("later").ok());
  EXPECT_THAT(topolet({"ps", "--config", rig.config()}).text, AllOf(HasSubstr("web"), HasSubstr("later")));
}

TEST(Prune, NeedsADatabase) {
  const TempDir empty;
  const Said said = topolet({"prune", "--older-than", "7d", "--state-dir", empty.path()});
  EXPECT_THAT(said.text, HasSubstr("there is no state database"));
  EXPECT_TRUE(fs::is_empty(empty.path())) << "nothing is made";
}

}  // namespace
}  // namespace topolet::testing
