#include "store/log_vfs.hpp"

#include <fmt/format.h>

#include <fstream>
#include <random>

#include "tests/store/scratch.hpp"
#include "tests/support/file_size_limit.hpp"

namespace topolet::store {
namespace {

using testing::FileSizeLimit;

namespace fs = std::filesystem;

/// How often this thread has asked the kernel to write.
std::uint64_t writes_so_far() {
  std::ifstream io("/proc/thread-self/io");
  for (std::string name, value; io >> name >> value;) {
    if (name == "syscw:") return std::stoull(value);
  }
  throw std::runtime_error("/proc/thread-self/io has no syscw");
}

/// By number: how many bytes, and which.
using Contents = std::map<std::int64_t, std::pair<std::int64_t, int>>;

class LogVfsTest : public StoreTest {
 protected:
  LogVfsTest() {
    fs::create_directory(directory());
    std::ofstream(file()).flush();
  }

  Database open_database(const std::string& pragmas = "") const {
    Database database = connect(Database::Access::kReadWrite);
    run(database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + pragmas);
    return database;
  }
  static void run(Database& database, const std::string& sql) {
    const Status done = database.execute(sql, "test");
    ASSERT_TRUE(done.has_value()) << sql << ": " << done.error().message;
  }

  static Contents contents_of(const fs::path& path) {
    const auto database = Database::open(path, Database::Access::kReadWrite);
    if (!database) throw std::runtime_error(database.error().message);
    EXPECT_EQ(*database->text("PRAGMA integrity_check", "check"), "ok");
    auto rows = database->prepare("SELECT number, length(bytes), unicode(substr(bytes, 1, 1)) FROM entry", "read");
    Contents contents;
    while (*rows->next()) contents[rows->integer(0)] = {rows->integer(1), static_cast<int>(rows->integer(2))};
    return contents;
  }
  /// The contents that a daemon finds which is started after this one was killed.
  Contents contents_after_kill() const {
    const fs::path copy = root_ / "copy";
    fs::remove_all(copy);
    fs::create_directory(copy);
    for (const char* name : {"state.db", "state.db-wal"}) fs::copy_file(directory() / name, copy / name);
    return contents_of(copy / "state.db");
  }
};

TEST_F(LogVfsTest, WritesATransactionToTheLogAtOnce) {
  Database database = open_database();
  for (int i = 0; i < 12; ++i) run(database, fmt::format("CREATE TABLE t{} (value TEXT)", i));
  std::string transaction = "BEGIN;";
  for (int i = 0; i < 12; ++i) transaction += fmt::format("INSERT INTO t{} VALUES ('x');", i);
  transaction += "COMMIT";
  run(database, transaction);
  const auto writes_of_transaction = [&] {
    const std::uint64_t before = writes_so_far();
    run(database, transaction);
    return writes_so_far() - before;
  };
  EXPECT_EQ(writes_of_transaction(), 1U) << "SQLite alone writes each of the 12 pages and its header";
  database.checkpoint();
  EXPECT_EQ(writes_of_transaction(), 2U) << "the log begins anew, and SQLite waits until its header is on the disk";
  EXPECT_EQ(writes_of_transaction(), 1U);
}

TEST_F(LogVfsTest, KeepsAllThatWasCommittedAndNothingElse) {
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    fs::remove_all(directory());
    fs::create_directory(directory());
    std::ofstream(file()).flush();
    // So few pages in memory that a transaction's go to the log before its end, and are changed there.
    const std::string pragmas = "PRAGMA cache_size = 10; PRAGMA wal_autocheckpoint = 300;";
    Database first = open_database(pragmas);
    Database second = open_database(pragmas);
    run(first, "CREATE TABLE entry (number INTEGER PRIMARY KEY, bytes TEXT); CREATE INDEX by_bytes ON entry (bytes)");
    std::mt19937 random(seed);
    const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    Contents committed;
    for (int transaction = 0; transaction < 60; ++transaction) {
      SCOPED_TRACE(fmt::format("seed {}, transaction {}", seed, transaction));
      Contents now = committed;
      Database& database = below(3) == 0 ? second : first;
      run(database, "BEGIN IMMEDIATE");
      const int changes = 1 + below(below(4) == 0 ? 300 : 8);
      for (int i = 0; i < changes; ++i) {
        const std::int64_t number = below(400);
        if (below(4) == 0) {
          run(database, fmt::format("DELETE FROM entry WHERE number = {}", number));
          now.erase(number);
        } else {
          const std::int64_t size = 1 + below(below(10) == 0 ? 20'000 : 300);
          const int letter = 'a' + below(26);
          run(database, fmt::format("INSERT OR REPLACE INTO entry VALUES ({}, replace(hex(zeroblob({})), '00', '{}'))",
                                    number, size, static_cast<char>(letter)));
          now[number] = {size, letter};
        }
      }
      const bool commits = below(5) != 0;
      run(database, commits ? "COMMIT" : "ROLLBACK");
      if (commits) committed = now;
      ASSERT_EQ(contents_after_kill(), committed);
      ASSERT_EQ(contents_of(file()), committed) << "beside it";
      if (below(10) == 0) database.checkpoint();
    }
  }
}

TEST_F(LogVfsTest, ATransactionThatDoesNotFitIsLostWholeAndTheNextIsNot) {
  Database database = open_database("PRAGMA wal_autocheckpoint = 0;");
  run(database, "CREATE TABLE entry (number INTEGER PRIMARY KEY, bytes TEXT); INSERT INTO entry VALUES (1, 'a')");
  const std::string large =
      "INSERT INTO entry SELECT number + 10, replace(hex(zeroblob(100000)), '00', 'b') FROM entry";
  const Contents before = {{1, {1, 'a'}}};
  const std::uintmax_t log = fs::file_size(directory() / "state.db-wal");
  for (const std::uintmax_t room : {0U, 10U, 5'000U, 90'000U}) {
    SCOPED_TRACE(room);
    {
      const FileSizeLimit limit(log + room);
      EXPECT_FALSE(database.execute(large, "test").has_value());
    }
    EXPECT_FALSE(database.in_transaction());
    EXPECT_EQ(contents_after_kill(), before);
  }
  run(database, large);
  const Contents after = {{1, {1, 'a'}}, {11, {100'000, 'b'}}};
  EXPECT_EQ(contents_after_kill(), after);
  EXPECT_EQ(contents_of(file()), after);
}

}  // namespace
}  // namespace topolet::store
