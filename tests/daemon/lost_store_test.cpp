// The state database is removed, replaced or locked while topoletd runs: pods go on, and a database that says
// what is held comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "store/database.hpp"
#include "tests/daemon/core_rig.hpp"
#include "tests/support/file_size_limit.hpp"

namespace topolet::daemon {
namespace {

namespace fs = std::filesystem;
using testing::CoreRig;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Strings = std::vector<std::string>;

constexpr const char* kHeldAndDecided =
    "SELECT count(*) FROM allocation WHERE decision NOT IN (SELECT decision FROM decided WHERE holds)";
constexpr const char* kDecidedAndNotHeld =
    "SELECT count(*) FROM decided WHERE holds AND decision NOT IN (SELECT decision FROM ended) AND decision NOT IN "
    "(SELECT decision FROM allocation)";

class LostStore : public ::testing::Test {
 protected:
  LostStore() {
    rig_.stop();
    // As topoletd has it: what is tested here is how it goes on without the database.
    rig_.options.writer_options = {.patience = std::chrono::milliseconds(50), .retry = std::chrono::milliseconds(50)};
    rig_.start();
    first_ = rig_.run({.pod = "first", .cpus = 1});
    shared_ = rig_.run({.pod = "shared"});
  }

  fs::path state() const { return rig_.file("state"); }
  fs::path database() const { return state() / "state.db"; }
  void remove_database() const {
    for (const auto& entry : fs::directory_iterator(state())) {
      if (entry.path().filename().string().rfind("state.db", 0) == 0) fs::remove(entry);
    }
  }

  /// A database that says just what runs is there by its name.
  void expect_recorded(const std::string& why) {
    ASSERT_TRUE(CoreRig::eventually([&] { return recorded(); })) << why;
    ASSERT_TRUE(CoreRig::eventually([&] { return !gap(why).empty(); })) << why;
    const std::string third = rig_.run({.pod = "third", .cpus = 1});
    EXPECT_TRUE(CoreRig::eventually([&] { return held("third") == rig_.runtime().row(third).cpus; }));
    EXPECT_EQ(rig_.query(kHeldAndDecided), Strings{"0"});
    EXPECT_EQ(rig_.query(kDecidedAndNotHeld), Strings{"0"});
    const Strings before = rig_.query("SELECT decision || ' ' || cpus FROM allocation ORDER BY decision");
    rig_.stop();
    rig_.start();
    rig_.list();
    EXPECT_EQ(rig_.query("SELECT decision || ' ' || cpus FROM allocation ORDER BY decision"), before);
    EXPECT_EQ(rig_.runtime().row(first_).cpus, held("first"));
  }
  /// The first column of the first row; "" also while the database cannot be asked.
  std::string ask(const std::string& sql) const {
    const auto connection = store::Database::open(database(), store::Database::Access::kReadOnly);
    if (!connection) return {};
    return connection->text(sql, "ask for a test").value_or("");
  }
  std::string held(const std::string& pod) const {
    return ask("SELECT cpus FROM current_placements WHERE pod = '" + pod + "'");
  }
  bool recorded() const { return held("first") == "0" && !held("shared").empty(); }
  std::string gap(const std::string& why) const {
    return ask("SELECT reason FROM decided WHERE event = 'gap' AND reason LIKE '%" + why + "%'");
  }

  CoreRig rig_;
  std::string first_;
  std::string shared_;
};

TEST_F(LostStore, IsBegunAnewWhereItWasRemoved) {
  const std::int64_t last = std::stoll(rig_.query("SELECT max(decision) FROM decided").at(0));
  const std::int64_t generation = std::stoll(rig_.query("SELECT max(generation) FROM decided").at(0));
  remove_database();
  expect_recorded("was removed");
  EXPECT_THAT(rig_.query("SELECT reason FROM decided WHERE event = 'recorded-again' ORDER BY decision"), SizeIs(2));
  EXPECT_GT(std::stoll(rig_.query("SELECT min(decision) FROM decided WHERE event = 'gap'").at(0)), last);
  EXPECT_GT(std::stoll(rig_.query("SELECT min(generation) FROM decided WHERE event = 'gap'").at(0)), generation);
  EXPECT_EQ(rig_.query("SELECT topology || ' ' || count(*) FROM topology_cpu GROUP BY topology"), Strings{"1 4"});
}

TEST_F(LostStore, IsMadeUpForFromMemoryUntilItsDirectoryIsMadeAgain) {
  fs::remove_all(state());
  ASSERT_TRUE(CoreRig::eventually([&] { return rig_.summary().store_degraded; }));
  EXPECT_THAT(rig_.summary().store_degraded_because, HasSubstr("the directory '" + state().string() + "' is gone"));
  const std::string meanwhile = rig_.run({.pod = "meanwhile", .cpus = 1});
  EXPECT_NE(rig_.runtime().row(meanwhile).cpus, rig_.runtime().row(first_).cpus);
  EXPECT_FALSE(fs::exists(state())) << "who removed it finds it removed";
  fs::create_directory(state());
  expect_recorded("was removed");
  EXPECT_TRUE(CoreRig::eventually([&] { return !rig_.summary().store_degraded; }));
}

TEST_F(LostStore, IsBegunAnewBesideTheFileThatTookItsPlace) {
  fs::copy_file(database(), state() / "copy");
  fs::rename(state() / "copy", database());
  const auto count_kept = [this] {
    std::size_t kept = 0;
    for (const auto& entry : fs::directory_iterator(state())) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("state.db.replaced-", 0) == 0 && name.find("-wal") + name.find("-shm") == 2 * std::string::npos)
        ++kept;
    }
    return kept;
  };
  // This process has the core in it: SQLite, if it opened the other file before, would cut the shared memory that the
  // core has mapped, as one process does not see its own locks.
  ASSERT_TRUE(CoreRig::eventually([&] { return count_kept() == 1; }));
  expect_recorded("was replaced by another file");
  EXPECT_EQ(count_kept(), 1U);
}

TEST_F(LostStore, GoesOnWhereItsLogWasRemoved) {
  fs::remove(database().string() + "-wal");
  // Who opens the database before would have another log.
  ASSERT_TRUE(CoreRig::eventually([&] { return fs::exists(database().string() + "-wal"); }));
  expect_recorded("-wal'' was removed");
  EXPECT_EQ(rig_.query("SELECT count(*) FROM decided WHERE event = 'unpinned' AND pod_name = 'first'"), Strings{"1"});
}

TEST_F(LostStore, CountsOnTheDenialsThatItHad) {
  std::string id;
  EXPECT_FALSE(rig_.create({.pod = "denied", .cpus = 64}, id).ok());
  remove_database();
  ASSERT_TRUE(CoreRig::eventually([&] { return recorded(); }));
  EXPECT_FALSE(rig_.create({.pod = "denied", .cpus = 64}, id).ok());
  EXPECT_TRUE(CoreRig::eventually([&] { return rig_.query("SELECT times FROM denials") == Strings{"2"}; }));
}

TEST_F(LostStore, LosesNothingOfWhatComesWhileItIsGone) {
  fs::remove_all(state());
  std::ofstream(state()) << "in the way";
  // Anything written until then goes with the file.
  ASSERT_TRUE(CoreRig::eventually([&] { return rig_.summary().store_degraded; }));
  const std::string while_gone = rig_.run({.pod = "while-gone", .cpus = 1});
  ASSERT_TRUE(rig_.stop_container(first_).ok());
  std::string id;
  EXPECT_FALSE(rig_.create({.pod = "denied", .cpus = 64}, id).ok());
  fs::remove(state());
  fs::create_directory(state());
  ASSERT_TRUE(CoreRig::eventually([&] { return held("while-gone") == rig_.runtime().row(while_gone).cpus; }));
  EXPECT_EQ(rig_.query("SELECT event FROM decided WHERE pod_name = 'while-gone'"), Strings{"unpinned"});
  EXPECT_EQ(rig_.query("SELECT event FROM decided WHERE pod_name = 'denied'"), Strings{"denied"});
  EXPECT_EQ(rig_.query("SELECT event FROM decided WHERE pod_name = 'first'"), Strings{"recorded-again"});
  EXPECT_EQ(ask("SELECT state FROM current_placements WHERE pod = 'first'"), "kept");
  EXPECT_EQ(rig_.query(kHeldAndDecided), Strings{"0"});
  EXPECT_EQ(rig_.query(kDecidedAndNotHeld), Strings{"0"});
}

TEST_F(LostStore, DoesNotHoldUpPodsWhileItIsLocked) {
  auto person = store::Database::open(database(), store::Database::Access::kReadWrite);
  ASSERT_TRUE(person.has_value());
  ASSERT_TRUE(person->execute("BEGIN EXCLUSIVE", "lock").has_value());
  const std::string second = rig_.run({.pod = "second", .cpus = 1});
  ASSERT_TRUE(rig_.stop_container(second).ok());
  const std::string third = rig_.run({.pod = "third", .cpus = 1});
  ASSERT_TRUE(person->execute("COMMIT", "unlock").has_value());
  EXPECT_TRUE(CoreRig::eventually([&] { return held("third") == rig_.runtime().row(third).cpus; }));
  EXPECT_TRUE(CoreRig::eventually([&] { return !gap("was not written in time").empty(); }));
  EXPECT_THAT(rig_.query("SELECT event FROM decided WHERE pod_name = 'second'"), SizeIs(1));
}

TEST_F(LostStore, DoesNotHoldUpPodsWhileTheDiskIsFull) {
  std::string second;
  {
    const testing::FileSizeLimit full(0);
    second = rig_.run({.pod = "second", .cpus = 1});
  }
  EXPECT_TRUE(CoreRig::eventually([&] { return held("second") == rig_.runtime().row(second).cpus; }));
  EXPECT_TRUE(CoreRig::eventually([&] { return !gap("was not written in time").empty(); }));
}

}  // namespace
}  // namespace topolet::daemon
