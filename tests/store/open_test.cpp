#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/store/scratch.hpp"

namespace topolet::store {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

class OpenTest : public StoreTest {
 protected:
  void make_closed_database() const {
    const auto store = open();
    for (std::uint32_t i = 0; i < 200; ++i) ASSERT_TRUE(store->add(exclusive_row("app", {i})).has_value());
  }

  /// Opens what was damaged: the file must be set aside whole and a new one begun.
  void expect_set_aside() const {
    const std::string before = bytes_of(file());
    const auto store = try_open();
    ASSERT_TRUE(store.has_value()) << message(store);
    EXPECT_EQ((*store)->report().set_aside, directory() / "state.db.damaged-1700000000000");
    EXPECT_EQ(bytes_of((*store)->report().set_aside), before);
    EXPECT_TRUE((*store)->allocations()->empty());
    EXPECT_TRUE((*store)->add(exclusive_row("new", {1})).has_value());
  }
};

TEST_F(OpenTest, MakesFilesThatOnlyTheOwnerMayRead) {
  const mode_t before = ::umask(0);
  const auto store = open();
  ::umask(before);
  ASSERT_TRUE(store->add(exclusive_row("app", {1})).has_value());
  EXPECT_EQ(mode_of(directory()), 0700U);
  for (const char* name : {"state.db", "state.db-wal", "state.db-shm", "state.db.lock", "state.db.generation"}) {
    EXPECT_EQ(mode_of(directory() / name), 0600U) << name;
  }
}

TEST_F(OpenTest, TakesAwayRightsThatOthersHave) {
  make_closed_database();
  ::chmod(file().c_str(), 0644);
  const auto store = open();
  EXPECT_EQ(mode_of(file()), 0600U);
}

TEST_F(OpenTest, MakesTheParentsOfTheDirectory) {
  const auto store = Store::open({.directory = root_ / "a" / "b/", .boot_id = "boot", .now_ms = 1});
  ASSERT_TRUE(store.has_value()) << message(store);
  EXPECT_EQ(mode_of(root_ / "a" / "b"), 0700U);
}

TEST_F(OpenTest, SaysWhatKindOfFileItIs) {
  const auto store = open();
  EXPECT_EQ(value("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(value("PRAGMA application_id"), std::to_string(0x74706c74));
  EXPECT_EQ(value("PRAGMA user_version"), "21");
}

TEST_F(OpenTest, RefusesADirectoryThatAnotherUses) {
  const auto first = open();
  const auto second = try_open();
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(message(second), "'" + (directory() / "state.db.lock").string() +
                                 "' is locked: another topoletd (process " + std::to_string(::getpid()) +
                                 ") runs with this state directory; stop it, or set another state-dir");
}

TEST_F(OpenTest, LetsTheDirectoryGoWhenClosed) {
  open().reset();
  EXPECT_TRUE(try_open().has_value());
}

TEST_F(OpenTest, SetsAsideWhatIsNoDatabase) {
  fs::create_directory(directory());
  write_bytes(file(), "these are not the pages you are looking for\n");
  expect_set_aside();
}

TEST_F(OpenTest, SetsAsideATruncatedFile) {
  make_closed_database();
  fs::resize_file(file(), fs::file_size(file()) / 2);
  expect_set_aside();
}

TEST_F(OpenTest, SetsAsideAFileWithABrokenPage) {
  make_closed_database();
  std::string bytes = bytes_of(file());
  for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 4096; ++i) bytes[i] = static_cast<char>(0xa5);
  write_bytes(file(), bytes);
  expect_set_aside();
}

TEST_F(OpenTest, SetsAsideADatabaseThatLacksTables) {
  make_closed_database();
  ASSERT_TRUE(
      connect(Database::Access::kReadWrite).execute("DROP VIEW live; DROP TABLE allocation_row", "drop").has_value());
  expect_set_aside();
}

TEST_F(OpenTest, SetsAsideADatabaseWhoseHeaderIsDamaged) {
  for (const char* pragma : {"PRAGMA application_id = 7", "PRAGMA user_version = -3", "PRAGMA user_version = 0",
                             "PRAGMA user_version = 10", "PRAGMA user_version = 1000000"}) {
    SCOPED_TRACE(pragma);
    std::filesystem::remove_all(directory());
    make_closed_database();
    ASSERT_TRUE(connect(Database::Access::kReadWrite).execute(pragma, "damage").has_value());
    expect_set_aside();
  }
}

TEST_F(OpenTest, SetsAsideWhatCannotBeUnderstood) {
  make_closed_database();
  StoreOptions options{.directory = directory(), .boot_id = "boot-1", .now_ms = 1};
  options.check_rows = [](Store& store) -> Status {
    const auto last = store.last_decision();
    if (!last || *last == 0) return {};
    return Error{Code::kDataLoss, "decision 3: column mode: 'exclusivf' is not known"};
  };
  const auto store = Store::open(options);
  ASSERT_TRUE(store.has_value()) << message(store);
  EXPECT_EQ((*store)->report().set_aside, directory() / "state.db.damaged-1");
  EXPECT_EQ((*store)->report().set_aside_because, "decision 3: column mode: 'exclusivf' is not known");
}

TEST_F(OpenTest, SetsTheLogAsideWithItsFile) {
  fs::create_directory(directory());
  write_bytes(file(), "no database");
  write_bytes(file().string() + "-wal", "its log");
  write_bytes(directory() / "state.db.damaged-1700000000000", "an earlier one");
  const auto store = open();
  EXPECT_EQ(store->report().set_aside, directory() / "state.db.damaged-1700000000001");
  EXPECT_EQ(bytes_of(store->report().set_aside), "no database");
  EXPECT_EQ(bytes_of(store->report().set_aside.string() + "-wal"), "its log");
}

TEST_F(OpenTest, BeginsAnewWithAnEmptyFile) {
  fs::create_directory(directory());
  write_bytes(file(), "");
  EXPECT_TRUE(open()->report().set_aside.empty());
}

TEST_F(OpenTest, SetsAnOlderSchemaAside) {
  for (const std::int64_t version : {1, 9}) {
    fs::remove_all(directory());
    make_closed_database();
    ASSERT_TRUE(connect(Database::Access::kReadWrite)
                    .execute(fmt::format("PRAGMA user_version = {}", version), "age")
                    .has_value());
    const std::string before = bytes_of(file());
    const auto store = open();
    const OpenReport& report = store->report();
    EXPECT_TRUE(report.was_too_old);
    EXPECT_EQ(report.set_aside, directory() / "state.db.too-old-1700000000000");
    EXPECT_EQ(report.set_aside_because, fmt::format("'{}' has schema version {}, and this topoletd reads versions from "
                                                    "10 on",
                                                    file().string(), version));
    EXPECT_EQ(bytes_of(report.set_aside), before);
    EXPECT_TRUE(store->allocations()->empty());
    EXPECT_TRUE(store->add(exclusive_row("new", {1})).has_value());
  }
}

TEST_F(OpenTest, LeavesAnOlderSchemaAloneWhileItsTopoletdRuns) {
  auto older = open();
  ASSERT_TRUE(connect(Database::Access::kReadWrite).execute("PRAGMA user_version = 9", "age").has_value());
  EXPECT_THAT(message(try_open()), ::testing::HasSubstr("is locked: another topoletd"));
  EXPECT_TRUE(older->add(exclusive_row("more", {1})).has_value());
  EXPECT_EQ(older->find_file_loss(), std::nullopt);
  older.reset();
  const auto store = open();
  EXPECT_TRUE(store->report().was_too_old);
  const auto aside = Database::open(store->report().set_aside, Database::Access::kReadOnly);
  EXPECT_EQ(aside->integer("SELECT count(*) FROM decided", "read").value(), 1);
}

TEST_F(OpenTest, SetsTheLogOfAnOlderSchemaAsideWithIt) {
  make_closed_database();
  {
    Database writer = connect(Database::Access::kReadWrite);
    writer.leave_untouched_at_close(true);
    ASSERT_TRUE(writer.execute("PRAGMA user_version = 9", "age").has_value());
  }
  const std::string log = bytes_of(file().string() + "-wal");
  ASSERT_FALSE(log.empty());
  const auto store = open();
  EXPECT_EQ(bytes_of(store->report().set_aside.string() + "-wal"), log);
  EXPECT_EQ(store->find_file_loss(), std::nullopt);
}

TEST_F(OpenTest, LetsAnOlderProgramGoOnWithTheFileThatIsSetAside) {
  make_closed_database();
  ASSERT_TRUE(connect(Database::Access::kReadWrite).execute("PRAGMA user_version = 9", "age").has_value());
  auto older = std::make_unique<Database>(connect(Database::Access::kReadWrite));
  ASSERT_TRUE(older->execute("BEGIN IMMEDIATE; UPDATE boot SET first_seen_ms = 7", "write as before").has_value());
  const auto store = open();
  ASSERT_TRUE(store->add(exclusive_row("new", {1})).has_value());
  ASSERT_TRUE(older->execute("COMMIT; UPDATE boot SET first_seen_ms = first_seen_ms + 1", "write on").has_value());
  // Without more ado, SQLite would remove the log here, by the name that is the new file's.
  older.reset();
  EXPECT_TRUE(fs::exists(file().string() + "-wal"));
  EXPECT_TRUE(fs::exists(file().string() + "-shm"));
  EXPECT_EQ(store->find_file_loss(), std::nullopt);
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "1");
  EXPECT_NE(value("SELECT first_seen_ms FROM boot"), "8");
  const auto aside = Database::open(store->report().set_aside, Database::Access::kReadOnly);
  ASSERT_TRUE(aside.has_value()) << message(aside);
  EXPECT_EQ(aside->integer("SELECT first_seen_ms FROM boot", "read").value(), 8);
  EXPECT_EQ(aside->integer("SELECT count(*) FROM decided", "read").value(), 200);
}

TEST_F(OpenTest, LeavesANewerSchemaAlone) {
  make_closed_database();
  ASSERT_TRUE(connect(Database::Access::kReadWrite).execute("PRAGMA user_version = 22", "age").has_value());
  const std::string before = bytes_of(file());
  const auto store = try_open();
  EXPECT_EQ(message(store), "'" + file().string() +
                                "' has schema version 22, but this topoletd knows only versions up to 21; run the "
                                "topoletd that wrote it or a later one, or move the file away to begin a new one");
  EXPECT_EQ(bytes_of(file()), before);
}

TEST_F(OpenTest, LeavesTheLogOfANewerSchemaAlone) {
  make_closed_database();
  {
    Database writer = connect(Database::Access::kReadWrite);
    writer.leave_untouched_at_close(true);
    ASSERT_TRUE(writer.execute("PRAGMA user_version = 22", "age").has_value());
  }
  const std::string before = bytes_of(file());
  const std::string log = bytes_of(file().string() + "-wal");
  ASSERT_FALSE(log.empty());
  EXPECT_THAT(message(try_open()), ::testing::HasSubstr("schema version 22"));
  EXPECT_EQ(bytes_of(file()), before);
  EXPECT_EQ(bytes_of(file().string() + "-wal"), log);
}

TEST_F(OpenTest, LeavesAnotherProgramsDatabaseAlone) {
  fs::create_directory(directory());
  write_bytes(file(), "");
  ASSERT_TRUE(connect(Database::Access::kReadWrite).execute("CREATE TABLE mine (x)", "make").has_value());
  const std::string before = bytes_of(file());
  EXPECT_THAT(message(try_open()), ::testing::HasSubstr("is a database of another program; move it away"));
  EXPECT_EQ(bytes_of(file()), before);
}

/// The error that opening gives to a user without privileges; "" if it opens.
std::string message_to_nobody(const StoreOptions& options) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    const std::string said = message(Store::open(options));
    ::_exit(::write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[512];
  for (ssize_t size = 0; (size = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(size));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : "the child failed";
}

TEST_F(OpenTest, SaysThatADirectoryCannotBeWritten) {
  ::chmod(root_.c_str(), 0755);
  fs::create_directory(directory());
  ::chmod(directory().c_str(), 0555);
  EXPECT_EQ(message_to_nobody({.directory = directory(), .boot_id = "boot", .now_ms = 1}),
            "cannot use '" + (directory() / "state.db.lock").string() +
                "': Permission denied; state-dir must be a directory that topoletd can write to");
  ::chmod(directory().c_str(), 0755);
}

TEST_F(OpenTest, FollowsNoLinkOutOfTheDirectory) {
  fs::create_directory(directory());
  write_bytes(root_ / "elsewhere", "");
  fs::create_symlink(root_ / "elsewhere", file());
  EXPECT_FALSE(try_open().has_value());
  EXPECT_EQ(bytes_of(root_ / "elsewhere"), "");
}

TEST_F(OpenTest, EndsWhatWasHeldBeforeAReboot) {
  {
    const auto store = open("boot-1");
    for (const char* name : {"a", "b", "c"})
      ASSERT_TRUE(add_with_allocation(*store, exclusive_row(name, {1})).has_value());
    ASSERT_TRUE(store->add(EndedRow{2, 1, 6, "exited"}).has_value());
    ASSERT_TRUE(store->set_generation(6).has_value());
    ASSERT_TRUE(store->put_pod(pod_columns("s1", "till")).has_value());
  }
  {
    const auto same = open("boot-1");
    EXPECT_EQ(same->report().ended_by_reboot, 0U);
    EXPECT_EQ(same->allocations()->size(), 2U);
    EXPECT_EQ(same->pods()->size(), 1U);
  }
  const auto store = open("boot-2");
  EXPECT_EQ(store->report().ended_by_reboot, 2U);
  EXPECT_TRUE(store->allocations()->empty());
  EXPECT_TRUE(store->pods()->empty());
  EXPECT_EQ(rows("SELECT decision, at_ms, generation FROM ended WHERE cause = 'reboot'", 3),
            (std::vector<std::vector<std::string>>{{"1", "1700000000000", "7"}, {"3", "1700000000000", "7"}}));
  EXPECT_EQ(*store->last_generation(), 7U);
}

class GenerationTest : public OpenTest {
 protected:
  fs::path noted() const { return directory() / "state.db.generation"; }

  void write_generation(std::uint64_t generation, const std::string& boot_id = "boot-1") const {
    const auto store = open(boot_id);
    ASSERT_TRUE(store->set_generation(generation).has_value());
    store->write_generation_file(generation);
  }

  /// Generation 5 is kept aside, 9 is written, and then the database is what it was at 5.
  void take_the_database_back() const {
    write_generation(5);
    fs::copy_file(file(), root_ / "older.db");
    write_generation(9);
    fs::copy_file(root_ / "older.db", file(), fs::copy_options::overwrite_existing);
  }

  std::uint64_t newest_lost_generation(const std::string& boot_id = "boot-1") const {
    return open(boot_id)->report().newest_lost_generation;
  }
};

TEST_F(GenerationTest, SaysThatTheDatabaseWentBack) {
  take_the_database_back();
  const auto store = open();
  EXPECT_EQ(store->report().newest_lost_generation, 9U);
  EXPECT_EQ(*store->last_generation(), 5U);
}

TEST_F(GenerationTest, SaysNothingOnceTheDatabaseIsAheadAgain) {
  take_the_database_back();
  write_generation(10);
  EXPECT_EQ(newest_lost_generation(), 0U);
}

TEST_F(GenerationTest, SaysThatADatabaseWasBegunAnew) {
  write_generation(9);
  fs::remove(file());
  EXPECT_EQ(newest_lost_generation(), 9U);
}

TEST_F(GenerationTest, SaysNothingAfterAReboot) {
  take_the_database_back();
  EXPECT_EQ(newest_lost_generation("boot-2"), 0U) << "a power cut may take the newest writes";
}

TEST_F(GenerationTest, SaysNothingAtTheFirstStart) { EXPECT_EQ(newest_lost_generation(), 0U); }

TEST_F(GenerationTest, SaysNothingWhereAllIsThere) {
  write_generation(9);
  EXPECT_EQ(newest_lost_generation(), 0U);
  EXPECT_EQ(bytes_of(noted()), "00000000000000000009 boot-1\n");
}

TEST_F(GenerationTest, TellsWhatWasActedOnAndNeverWritten) {
  write_generation(9);
  open()->write_generation_file(12);
  EXPECT_EQ(newest_lost_generation(), 12U);
}

TEST_F(GenerationTest, KeepsTheHighestThatWasNoted) {
  {
    const auto store = open();
    store->write_generation_file(12);
    store->write_generation_file(8);
  }
  EXPECT_EQ(newest_lost_generation(), 12U);
}

TEST_F(GenerationTest, ReadsNothingFromAFileThatIsNotItsOwn) {
  write_generation(9);
  const std::vector<std::string> garbage{"",
                                         "boot-1",
                                         "-5 boot-1",
                                         "99999999999999999999 boot-1",
                                         "00000000000000000012",
                                         "12 boot-10",
                                         std::string("12\0boot-1", 9),
                                         std::string(4096, 'x')};
  for (const std::string& bytes : garbage) {
    write_bytes(noted(), bytes);
    EXPECT_EQ(newest_lost_generation(), 0U) << bytes;
  }
  write_generation(10);
  write_bytes(noted(), bytes_of(noted()) + "and more");
  EXPECT_EQ(newest_lost_generation(), 0U);
}

TEST_F(GenerationTest, IsForItsOwnerAlone) {
  write_generation(9);
  ::chmod(noted().c_str(), 0644);
  { const auto store = open(); }
  EXPECT_EQ(mode_of(noted()), 0600U);
}

TEST_F(OpenTest, LetsReadersInWhileItWrites) {
  const auto store = open();
  const Database reader = connect(Database::Access::kReadOnly);
  auto snapshot = reader.prepare("SELECT count(*) FROM decided", "count");
  ASSERT_TRUE(snapshot.has_value());
  ASSERT_TRUE(store->add(exclusive_row("a", {1})).has_value());
  ASSERT_TRUE(*snapshot->next());
  EXPECT_EQ(snapshot->integer(0), 1);
  ASSERT_TRUE(store->add(exclusive_row("b", {2})).has_value())
      << "a reader in the middle of a query must not stop the writer";
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "2");
  const Status written = connect(Database::Access::kReadOnly).execute("DELETE FROM allocation_row", "write");
  EXPECT_EQ(written.error().code, Code::kPermissionDenied);
}

TEST_F(OpenTest, HasItsSchemaInTheFileItself) {
  const auto store = open();
  fs::copy_file(file(), root_ / "copy.db");
  const auto copy = Database::open(root_ / "copy.db", Database::Access::kReadOnly);
  ASSERT_TRUE(copy.has_value());
  EXPECT_EQ(*copy->integer("SELECT count(*) FROM current_placements", "count"), 0);
}

TEST(OpenInMemory, KeepsWhatIsWrittenAsLongAsItLives) {
  const auto store = Store::open_in_memory("boot-1", 1);
  ASSERT_TRUE(store.has_value()) << message(store);
  ASSERT_TRUE(add_with_allocation(**store, exclusive_row("a", {1})).has_value());
  EXPECT_EQ((*store)->allocations()->size(), 1U);
  (*store)->write_generation_file(7);
  EXPECT_EQ((*store)->report().newest_lost_generation, 0U);
  EXPECT_EQ((*store)->add(EndedRow{7, 1, 1, "stopped"}).error().code, Code::kNotFound);
  const auto other = Store::open_in_memory("boot-1", 1);
  ASSERT_TRUE(other.has_value());
  EXPECT_TRUE((*other)->allocations()->empty());
}

}  // namespace
}  // namespace topolet::store
