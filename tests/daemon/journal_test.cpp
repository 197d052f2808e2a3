#include "core/daemon/journal.hpp"

#include <gtest/gtest.h>

#include "store/database.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet {
namespace {

/// A real store, behind writes that fail while the test says so.
class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Store::open({.directory = directory_.path(), .boot_id = "boot", .now_ms = 1});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = *std::move(opened);
    journal_ = std::make_unique<Journal>(*store_, Clock(), *log_);
  }

  Journal::Write write(const std::string& event) {
    return [this, event](Store& store) -> Status {
      if (failing_) return Error{Code::kUnavailable, "disk is full"};
      DecidedRow row;
      row.event = event;
      row.holds = false;
      const auto added = store.add(row);
      return added ? Status() : Status(added.error());
    };
  }

  std::vector<std::string> events() const {
    std::vector<std::string> found;
    auto database = Database::open(directory_.path() / "state.db", Database::Access::kReadOnly);
    auto statement = database->prepare("SELECT event FROM decided ORDER BY decision", "read the events");
    while (*statement->next()) found.push_back(statement->text(0));
    return found;
  }

  TempDir directory_;
  std::shared_ptr<Log> log_ = make_silent_log();
  std::unique_ptr<Store> store_;
  std::unique_ptr<Journal> journal_;
  bool failing_ = false;
};

TEST_F(JournalTest, WritesAtOnce) {
  journal_->write(write("placed"));
  EXPECT_EQ(events(), std::vector<std::string>{"placed"});
  EXPECT_FALSE(journal_->degraded());
}

TEST_F(JournalTest, KeepsWhatCouldNotBeWrittenAndRecordsTheGapFirst) {
  failing_ = true;
  journal_->write(write("first"));
  failing_ = false;
  journal_->write(write("second"));
  EXPECT_TRUE(journal_->degraded());
  EXPECT_TRUE(events().empty()) << "nothing overtakes what was kept";
  journal_->catch_up();
  EXPECT_EQ(events(), (std::vector<std::string>{"gap", "first", "second"}));
  EXPECT_FALSE(journal_->degraded());
}

TEST_F(JournalTest, DropsAWriteThatCanNeverSucceed) {
  journal_->write([](Store& store) { return store.set_live_cpus(4711, CpuSet{0}); });
  EXPECT_FALSE(journal_->degraded());
  journal_->write(write("next"));
  EXPECT_EQ(events(), std::vector<std::string>{"next"});
}

}  // namespace
}  // namespace topolet
