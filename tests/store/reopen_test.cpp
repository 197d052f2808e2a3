#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "store/inspect.hpp"
#include "store/plugin_state_table.hpp"
#include "tests/store/scratch.hpp"
#include "tests/support/eventually.hpp"

namespace topolet::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::int64_t kNow = 1'700'000'000'000;

class ReopenTest : public StoreTest {
 protected:
  ReopenTest() : store_(open()) {
    EXPECT_TRUE(add_with_allocation(*store_, exclusive_row("app", {1})).has_value());
    EXPECT_TRUE(store_->set_generation(5).has_value());
  }

  FileLoss loss() const {
    const auto found = store_->find_file_loss();
    return found.value_or(FileLoss{"nothing", Leftover::kKept});
  }
  Result<fs::path> reopen() { return store_->reopen(loss(), {1, 5}, kNow); }

  /// The store writes to what is in the directory by that name.
  void expect_writable() {
    const std::string before = value("SELECT count(*) FROM decided");
    EXPECT_TRUE(store_->add(exclusive_row("more", {2})).has_value());
    EXPECT_EQ(value("SELECT count(*) FROM decided"), std::to_string(std::stoi(before) + 1));
    EXPECT_EQ(store_->find_file_loss(), std::nullopt);
  }

  std::unique_ptr<Store> store_;
};

TEST_F(ReopenTest, FindsNothingWhileTheFilesStay) {
  EXPECT_FALSE(store_->find_file_loss().has_value());
  EXPECT_TRUE(connect(Database::Access::kReadWrite).execute("VACUUM", "make it smaller").has_value());
  EXPECT_FALSE(store_->find_file_loss().has_value());
}

TEST_F(ReopenTest, FindsNoLossInAFileThatAPersonMadeSmaller) {
  for (std::uint32_t i = 0; i < 400; ++i) {
    DecidedRow row = denied_row("app");
    row.reason = std::string(2000, 'r');
    ASSERT_TRUE(store_->add(row).has_value());
  }
  {
    Database person = connect(Database::Access::kReadWrite);
    // The first column of the answer is 1 where the store's own thread was at it.
    const auto checkpoint = [&person] {
      EXPECT_TRUE(testing::eventually(
          [&person] { return person.integer("PRAGMA wal_checkpoint(FULL)", "make a checkpoint").value_or(1) == 0; }));
    };
    checkpoint();
    EXPECT_FALSE(store_->find_file_loss().has_value());
    const auto before = fs::file_size(file());
    ASSERT_TRUE(person
                    .execute("UPDATE retention SET mark = 400; DELETE FROM decided WHERE decision BETWEEN 2 AND 400; "
                             "VACUUM",
                             "prune")
                    .has_value());
    checkpoint();
    ASSERT_LT(fs::file_size(file()), before);
  }
  EXPECT_FALSE(store_->find_file_loss().has_value());
}

TEST_F(ReopenTest, BeginsANewFileWhereAllWasRemoved) {
  for (const auto& entry : fs::directory_iterator(directory())) fs::remove(entry);
  EXPECT_EQ(loss().what, "'" + file().string() + "' was removed");
  EXPECT_EQ(*reopen(), fs::path());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "0");
  expect_writable();
  EXPECT_FALSE(try_open().has_value()) << "the new directory is locked as the old one was";
}

TEST_F(ReopenTest, MakesNoDirectoryInThePlaceOfOneThatWasRemoved) {
  fs::remove_all(directory());
  const FileLoss removed = loss();
  EXPECT_EQ(removed.what, "'" + file().string() + "' was removed");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto reopened = store_->reopen(removed, {1, 5}, kNow);
    EXPECT_EQ(reopened.error().code, Code::kUnavailable);
    EXPECT_THAT(message(reopened), HasSubstr("the directory '" + directory().string() + "' is gone"));
  }
  store_->write_generation_file(6);
  store_.reset();
  EXPECT_FALSE(fs::exists(directory()));
}

TEST_F(ReopenTest, BeginsANewFileInADirectoryThatIsMadeAgain) {
  fs::remove_all(directory());
  const FileLoss removed = loss();
  EXPECT_FALSE(store_->reopen(removed, {1, 5}, kNow).has_value());
  fs::create_directory(directory());
  EXPECT_EQ(*store_->reopen(removed, {1, 5}, kNow), fs::path());
  expect_writable();
}

TEST_F(ReopenTest, TakesNoWritesUntilThereIsADirectoryAgain) {
  fs::remove_all(directory());
  std::ofstream(directory()) << "in the way";
  const auto reopened = reopen();
  EXPECT_EQ(message(reopened), "'" + directory().string() + "' is a file; state-dir must be a directory");
  EXPECT_EQ(store_->begin().error().code, Code::kUnavailable);
  EXPECT_EQ(store_->add(exclusive_row("app", {1})).error().code, Code::kUnavailable);
  fs::remove(directory());
  fs::create_directory(directory());
  EXPECT_TRUE(reopen().has_value());
  expect_writable();
}

TEST_F(ReopenTest, TriesTheSameAgain) {
  fs::remove_all(directory());
  std::ofstream(directory()) << "in the way";
  const FileLoss removed = loss();
  EXPECT_FALSE(store_->reopen(removed, {1, 5}, kNow).has_value());
  EXPECT_FALSE(store_->reopen(removed, {1, 5}, kNow).has_value());
  fs::remove(directory());
  fs::create_directory(directory());
  EXPECT_TRUE(store_->reopen(removed, {1, 5}, kNow).has_value());
  expect_writable();
}

TEST_F(ReopenTest, RenamesAFileThatTookItsPlace) {
  fs::remove(file());
  std::ofstream(file()) << "somebody's";
  EXPECT_EQ(loss().what, "'" + file().string() + "' was replaced by another file");
  EXPECT_EQ(*reopen(), file().string() + ".replaced-1700000000000");
  expect_writable();
}

TEST_F(ReopenTest, RenamesAFileThatWasCut) {
  connect(Database::Access::kReadWrite).checkpoint();
  ASSERT_FALSE(store_->find_file_loss().has_value());
  fs::resize_file(file(), 4096);
  EXPECT_EQ(loss().what, "'" + file().string() + "' was cut to 4096 bytes");
  EXPECT_EQ(*reopen(), file().string() + ".damaged-1700000000000");
  expect_writable();
}

TEST_F(ReopenTest, GoesOnWithAFileWhoseLogWasRemoved) {
  fs::remove(file().string() + "-wal");
  EXPECT_EQ(loss().what, "'" + file().string() + "-wal' was removed");
  EXPECT_EQ(*reopen(), fs::path());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "1") << "nothing is lost";
  expect_writable();
}

TEST_F(ReopenTest, GoesOnWithAFileWhoseLogIndexWasRemoved) {
  fs::remove(file().string() + "-shm");
  EXPECT_EQ(loss().leftover, Leftover::kKept);
  EXPECT_EQ(*reopen(), fs::path());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "1");
  expect_writable();
}

TEST_F(ReopenTest, GivesNoNumberTwice) {
  ASSERT_TRUE(store_->add(exclusive_row("unknown", {3})).has_value());
  const auto reopened = store_->reopen({"for a test", Leftover::kKept}, {1, 5}, kNow);
  EXPECT_EQ(*reopened, file().string() + ".replaced-1700000000000");
  ASSERT_TRUE(store_->skip_decisions(7).has_value());
  EXPECT_EQ(*store_->last_decision(), 7);
  EXPECT_EQ(*store_->add(exclusive_row("next", {3})), 8);
  ASSERT_TRUE(store_->skip_decisions(4).has_value());
  EXPECT_EQ(*store_->last_decision(), 8);
}

TEST_F(ReopenTest, TakesThePluginsValuesAlong) {
  PluginStateTable values(directory());
  store_->on_reopened([&values] { values.reopen(); });
  ASSERT_TRUE(values.set("numa", "before", "b").has_value());
  for (const auto& entry : fs::directory_iterator(directory())) fs::remove(entry);
  ASSERT_TRUE(reopen().has_value());
  ASSERT_TRUE(values.set("numa", "after", "a").has_value());
  EXPECT_TRUE(testing::eventually([this] { return value("SELECT count(*) FROM plugin_state") == "2"; }));
  EXPECT_EQ(column("SELECT CAST(value AS TEXT) FROM plugin_state ORDER BY 1"), "a,b");
  EXPECT_EQ(*values.get("numa", "before").value(), "b");
}

/// A directory that takes no writes, whoever asks.
class DetachedTest : public StoreTest {
 protected:
  std::unique_ptr<Store> open_detached(const std::string& boot_id = "boot-1") const {
    auto store = Store::open_detached({.directory = directory(), .boot_id = boot_id, .now_ms = kNow},
                                      {Code::kPermissionDenied, "the directory is read-only"});
    if (!store) throw std::runtime_error(store.error().message);
    return *std::move(store);
  }
  void make_database() const {
    const auto store = open();
    ASSERT_TRUE(add_with_allocation(*store, exclusive_row("app", {1})).has_value());
    ASSERT_TRUE(store->put_pod(pod_columns("s1", "till")).has_value());
  }
};

TEST_F(DetachedTest, KnowsWhatTheFileHoldsAndTakesNoWrites) {
  make_database();
  const auto store = open_detached();
  EXPECT_EQ(store->allocations()->size(), 1U);
  EXPECT_EQ(store->pods()->size(), 1U);
  EXPECT_EQ(*store->last_decision(), 1);
  EXPECT_EQ(store->begin().error().message, "the directory is read-only");
  EXPECT_EQ(store->find_file_loss()->what, "the directory is read-only");
}

TEST_F(DetachedTest, HoldsNothingOfAnOlderVersionUntilTheFileCanBeWritten) {
  make_database();
  ASSERT_TRUE(
      connect(Database::Access::kReadWrite)
          .execute("ALTER TABLE reported_capacity RENAME TO told_capacity;"
                   "CREATE TABLE backfill (subject TEXT PRIMARY KEY, next INTEGER NOT NULL, last INTEGER NOT "
                   "NULL) STRICT; DROP VIEW live; DROP VIEW current_placements; DROP VIEW allocation;"
                   "DROP TABLE whole_pool; ALTER TABLE allocation_row RENAME TO allocation;"
                   "ALTER TABLE allocation RENAME COLUMN own_cpus TO cpus;"
                   "ALTER TABLE allocation RENAME COLUMN own_vacating TO vacating;"
                   "ALTER TABLE allocation RENAME COLUMN own_generation TO generation;"
                   "ALTER TABLE allocation DROP COLUMN shares_pool_row;"
                   "CREATE VIEW live AS SELECT 1; CREATE VIEW current_placements AS SELECT 1;"
                   "ALTER TABLE decided DROP COLUMN tags; ALTER TABLE decided DROP COLUMN memory_cost;"
                   "ALTER TABLE allocation DROP COLUMN mems_to_keep; ALTER TABLE allocation DROP COLUMN "
                   "tags; ALTER TABLE "
                   "allocation DROP COLUMN adopted; ALTER TABLE allocation DROP COLUMN unified; ALTER TABLE "
                   "allocation DROP COLUMN kubelet_unified; ALTER TABLE allocation DROP COLUMN last_move; "
                   "ALTER TABLE allocation DROP COLUMN moved_from; ALTER TABLE allocation DROP COLUMN "
                   "narrowed_to; ALTER TABLE allocation DROP COLUMN memory_high; ALTER TABLE allocation DROP COLUMN "
                   "widening; ALTER TABLE pod DROP COLUMN waiting; DROP "
                   "TABLE recent_size; DROP TABLE decided_load; DROP TABLE load_sample; PRAGMA user_version = 13",
                   "age")
          .has_value());
  const auto store = open_detached();
  EXPECT_TRUE(store->allocations()->empty());
  EXPECT_TRUE(store->capacities()->empty());
  ASSERT_TRUE(store->reopen(*store->find_file_loss(), {1, 5}, kNow).has_value());
  EXPECT_EQ(value("PRAGMA user_version"), "21");
  EXPECT_EQ(store->allocations()->size(), 1U);
}

TEST_F(DetachedTest, SetsAFileOfTooOldASchemaAsideOnceItCan) {
  make_database();
  ASSERT_TRUE(connect(Database::Access::kReadWrite).execute("PRAGMA user_version = 9", "age").has_value());
  const auto store = open_detached();
  EXPECT_TRUE(store->allocations()->empty());
  const auto moved = store->reopen(*store->find_file_loss(), {0, 0}, kNow);
  ASSERT_TRUE(moved.has_value()) << message(moved);
  EXPECT_EQ(*moved, directory() / fmt::format("state.db.too-old-{}", kNow));
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "0");
}

TEST_F(DetachedTest, GoesOnWithTheFileOnceItCanBeWritten) {
  make_database();
  const auto store = open_detached();
  EXPECT_EQ(*store->reopen(*store->find_file_loss(), {1, 5}, kNow), fs::path());
  EXPECT_EQ(store->allocations()->size(), 1U);
  EXPECT_TRUE(store->add(exclusive_row("more", {2})).has_value());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "2");
}

TEST_F(DetachedTest, HoldsNothingOfAnotherBoot) {
  make_database();
  const auto store = open_detached("boot-2");
  EXPECT_TRUE(store->allocations()->empty());
  EXPECT_TRUE(store->pods()->empty());
  EXPECT_EQ(*store->last_decision(), 1);
  ASSERT_TRUE(store->reopen(*store->find_file_loss(), {1, 5}, kNow).has_value());
  EXPECT_EQ(column("SELECT cause FROM ended"), "reboot");
}

TEST_F(DetachedTest, BeginsWithNothingWhereThereIsNoFile) {
  const auto store = open_detached();
  EXPECT_EQ(*store->last_decision(), 0);
  EXPECT_TRUE(store->reopen(*store->find_file_loss(), {0, 0}, kNow).has_value());
  EXPECT_TRUE(store->add(exclusive_row("app", {1})).has_value());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "1");
}

TEST_F(DetachedTest, MakesNoDirectoryInThePlaceOfOneThatWasThere) {
  make_database();
  const auto store = open_detached();
  fs::remove_all(directory());
  EXPECT_FALSE(store->reopen(*store->find_file_loss(), {1, 5}, kNow).has_value());
  EXPECT_FALSE(fs::exists(directory()));
}

TEST_F(DetachedTest, IsAllThereIsWhereTheDirectoryMustNotBeMade) {
  const StoreOptions options{
      .directory = directory(), .boot_id = "boot-1", .now_ms = kNow, .may_make_directory = false};
  const auto refused = Store::open(options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_FALSE(is_misconfigured(refused.error())) << "topoletd starts without it";
  const auto store = Store::open_detached(options, refused.error());
  ASSERT_TRUE(store.has_value());
  EXPECT_FALSE((*store)->reopen(*(*store)->find_file_loss(), {0, 0}, kNow).has_value());
  EXPECT_FALSE(fs::exists(directory()));
  fs::create_directory(directory());
  EXPECT_TRUE((*store)->reopen(*(*store)->find_file_loss(), {0, 0}, kNow).has_value());
}

class RefusalTest : public StoreTest {
 protected:
  void expect_refused(const std::string& why) const {
    const auto store = try_open();
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(store.error().message, HasSubstr(why));
  }
};

TEST_F(RefusalTest, OfADirectoryThatOthersMayWriteTo) {
  fs::create_directory(directory());
  ::chmod(directory().c_str(), 0777);
  expect_refused("is writable by others (mode 0777, group");
  ::chmod(directory().c_str(), 0755);
  EXPECT_TRUE(try_open().has_value());
}

TEST_F(RefusalTest, OfADirectoryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
  fs::create_directory(directory());
  ASSERT_EQ(::chown(directory().c_str(), 12345, 0), 0);
  expect_refused("is owned by user 12345");
}

TEST_F(RefusalTest, OfAFileWithAnotherName) {
  open().reset();
  fs::create_hard_link(file(), root_ / "elsewhere");
  expect_refused("'" + file().string() + "' has 2 names (hard links); move it away");
}

TEST_F(RefusalTest, OfWhatIsNoFile) {
  fs::create_directory(directory());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  expect_refused("'" + file().string() + "' is not a regular file");
}

TEST_F(RefusalTest, OfAFileInThePlaceOfTheDirectory) {
  std::ofstream(directory()) << "a file";
  expect_refused("'" + directory().string() + "' is a file; state-dir must be a directory");
}

}  // namespace
}  // namespace topolet::store
