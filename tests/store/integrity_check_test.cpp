#include <fstream>
#include <future>

#include "tests/store/scratch.hpp"

namespace topolet::store {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A database that is too large for a start to read it whole.
class IntegrityCheckTest : public StoreTest {
 protected:
  static constexpr int kDecisions = 400;

  void make_large_database() const {
    const auto store = open();
    ASSERT_TRUE(store->begin().has_value());
    DecidedRow row = exclusive_row("app", {1});
    row.reason = std::string(20000, 'r');  // on pages of its own
    for (int i = 0; i < kDecisions; ++i) ASSERT_TRUE(store->add(row).has_value());
    ASSERT_TRUE(store->commit().has_value());
  }

  IntegrityReport check(Store& store) const {
    std::promise<IntegrityReport> promise;
    store.check_integrity([&promise](const IntegrityReport& report) { promise.set_value(report); });
    return promise.get_future().get();
  }

  /// Writes over the page, from 1, of the file.
  void damage_page(std::int64_t page) const {
    std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp((page - 1) * 4096);
    stream << std::string(4096, static_cast<char>(0xa5));
  }
  std::int64_t root_of(const std::string& name) const {
    return std::stoll(value("SELECT rootpage FROM sqlite_schema WHERE name = '" + name + "'"));
  }

  std::unique_ptr<Store> open_with_short_slices() const {
    auto store = Store::open(
        {.directory = directory(),
         .boot_id = "boot-1",
         .now_ms = 1'700'000'000'000,
         .integrity_check_pace = {.slice = std::chrono::milliseconds(0), .pause = std::chrono::milliseconds(0)}});
    return *std::move(store);
  }
};

TEST_F(IntegrityCheckTest, ReadsEachRowAndEachEntryOfAnIndexOnce) {
  make_large_database();
  const auto store = open_with_short_slices();
  const IntegrityReport report = check(*store);
  EXPECT_THAT(report.damage, IsEmpty());
  std::uint64_t entries = 0;
  std::uint32_t trees = 0;
  for (const auto& table : rows("SELECT name FROM sqlite_schema WHERE type = 'table'")) {
    const std::uint64_t count = std::stoull(value("SELECT count(*) FROM " + table[0]));
    entries += count;
    ++trees;
    for (const auto& index :
         rows("SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = '" + table[0] + "'")) {
      ++trees;
      if (index[0].find(" WHERE ") == std::string::npos) entries += count;
    }
  }
  // The primary key of a table without rowids is the table itself.
  EXPECT_EQ(report.entries, entries);
  EXPECT_EQ(report.trees, trees);
}

TEST_F(IntegrityCheckTest, FindsADamagedTableThatTheStartDidNotRead) {
  make_large_database();
  damage_page(root_of("decided"));
  {
    const auto store = open();
    EXPECT_THAT(store->report().set_aside.string(), IsEmpty()) << "a start reads only what it needs";
    EXPECT_THAT(check(*store).damage, HasSubstr("decided"));
    EXPECT_TRUE(store->put_pod(pod_columns("s1", "till")).has_value()) << "the rest can be written";
  }
  const auto next = open();
  EXPECT_EQ(next->report().set_aside, directory() / "state.db.damaged-1700000000000");
  EXPECT_THAT(next->report().set_aside_because, HasSubstr("decided"));
  EXPECT_FALSE(std::filesystem::exists(file().string() + ".damaged"));
  EXPECT_THAT(check(*next).damage, IsEmpty());
}

TEST_F(IntegrityCheckTest, FindsADamagedIndex) {
  make_large_database();
  damage_page(root_of("decided_by_container"));
  const auto store = open();
  EXPECT_THAT(store->report().set_aside.string(), IsEmpty());
  EXPECT_THAT(check(*store).damage, HasSubstr("decided_by_container"));
}

TEST_F(IntegrityCheckTest, FindsAPageThatALongTextIsMissing) {
  make_large_database();
  // A page that has nothing but text, and before it the number of the page where it goes on.
  std::ifstream stream(file(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const std::string page_of_text(4092, 'r');
  const std::string end(4, '\0');
  std::size_t text = bytes.find(page_of_text, bytes.size() / 2);
  // The last page of a text has no next one, and may have more of the letter than belongs to it.
  while (text != std::string::npos && bytes.compare(text - 4, 4, end) == 0) text = bytes.find(page_of_text, text + 1);
  ASSERT_NE(text, std::string::npos);
  std::fstream damaged(file(), std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(static_cast<std::streamoff>(text / 4096 * 4096));
  damaged << "\x7f\xff\xff\xff";
  damaged.close();
  const auto store = open();
  EXPECT_THAT(store->report().set_aside.string(), IsEmpty());
  EXPECT_THAT(check(*store).damage, HasSubstr("decided"));
}

TEST_F(IntegrityCheckTest, EndsWithItsStore) {
  make_large_database();
  const auto store =
      Store::open({.directory = directory(),
                   .boot_id = "boot-1",
                   .now_ms = 1,
                   .integrity_check_pace = {.slice = std::chrono::milliseconds(0), .pause = std::chrono::hours(1)}});
  ASSERT_TRUE(store.has_value());
  (*store)->check_integrity([](const IntegrityReport&) { ADD_FAILURE() << "it cannot be done yet"; });
}

TEST_F(IntegrityCheckTest, SetsADamagedTableOfWhatIsHeldAsideAtTheStart) {
  make_large_database();
  { ASSERT_TRUE(add_with_allocation(*open(), exclusive_row("held", {1})).has_value()); }
  damage_page(root_of("allocation_row"));
  EXPECT_EQ(open()->report().set_aside, directory() / "state.db.damaged-1700000000000");
}

TEST_F(IntegrityCheckTest, SetsALargeFileThatWasCutAsideAtTheStart) {
  make_large_database();
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) - 4096);
  EXPECT_EQ(open()->report().set_aside, directory() / "state.db.damaged-1700000000000");
}

TEST_F(IntegrityCheckTest, IgnoresTheMarkOfAnotherFile) {
  make_large_database();
  std::ofstream(file().string() + ".damaged") << "1 1\nsome other file\n";
  EXPECT_THAT(open()->report().set_aside.string(), IsEmpty());
  std::ofstream(file().string() + ".damaged") << "";
  EXPECT_THAT(open()->report().set_aside.string(), IsEmpty());
}

}  // namespace
}  // namespace topolet::store
