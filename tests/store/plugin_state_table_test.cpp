#include "store/plugin_state_table.hpp"

#include <gtest/gtest.h>

#include "store/database.hpp"
#include "store/store.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::store {
namespace {

class PluginValuesTest : public ::testing::Test {
 protected:
  PluginValuesTest() {
    auto store = Store::open({.directory = directory_.path() / "state", .boot_id = "boot", .now_ms = 1});
    EXPECT_TRUE(store.has_value());
    store_ = *std::move(store);
    open();
  }
  void open() {
    values_.reset();
    values_ = std::make_unique<PluginStateTable>(directory_.path() / "state");
  }

  TempDir directory_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<PluginStateTable> values_;
};

TEST_F(PluginValuesTest, AreKeptAsTheyAreOverARestart) {
  const std::string bytes("\0\xff'\n", 4);
  ASSERT_TRUE(values_->set("numa", bytes, std::string(64 << 10, '\0') + bytes).has_value());
  ASSERT_TRUE(values_->set("numa", "empty", "").has_value());
  open();
  EXPECT_EQ(*values_->get("numa", bytes).value(), std::string(64 << 10, '\0') + bytes);
  EXPECT_EQ(*values_->get("numa", "empty").value(), "");
  EXPECT_EQ(values_->get("numa", "other").value(), std::nullopt);
  EXPECT_EQ(values_->get("gpu", bytes).value(), std::nullopt) << "each plugin has its own";
  ASSERT_TRUE(values_->set("numa", "empty", "no more").has_value());
  EXPECT_EQ(*values_->get("numa", "empty").value(), "no more");
}

TEST_F(PluginValuesTest, AreWalkedInTheOrderOfTheirBytes) {
  for (const char* key : {"b", "a", "\xff", "aa"}) ASSERT_TRUE(values_->set("numa", key, "x").has_value());
  ASSERT_TRUE(values_->set("smt", "0", "x").has_value());
  std::string walked;
  for (auto key = values_->next("numa", "").value(); key; key = values_->next("numa", *key).value()) {
    walked += *key + ' ';
  }
  EXPECT_EQ(walked, "a aa b \xff ");
  EXPECT_EQ(*values_->count("numa"), 4U);
  EXPECT_EQ(*values_->count("gpu"), 0U);
  ASSERT_TRUE(values_->remove("numa", "a").has_value());
  EXPECT_TRUE(values_->remove("numa", "a").has_value());
  EXPECT_EQ(values_->next("numa", "").value(), "aa");
}

TEST_F(PluginValuesTest, AreReadAsTheyWereSetThoughTheyWaitToBeWritten) {
  for (const char* key : {"a", "b"}) ASSERT_TRUE(values_->set("numa", key, "before").has_value());
  auto other = Database::open(directory_.path() / "state" / "state.db", Database::Access::kReadWrite);
  ASSERT_TRUE(other.has_value());
  ASSERT_TRUE(other->execute("BEGIN IMMEDIATE", "let nobody write").has_value());
  EXPECT_TRUE(values_->set("numa", "a", "after").has_value());
  EXPECT_TRUE(values_->remove("numa", "b").has_value());
  EXPECT_TRUE(values_->set("numa", "c", "new").has_value());
  EXPECT_EQ(values_->get("numa", "a").value(), "after");
  EXPECT_EQ(values_->get("numa", "b").value(), std::nullopt);
  EXPECT_EQ(values_->get("numa", "c").value(), "new");
  EXPECT_EQ(values_->next("numa", "a").value(), "c");
  EXPECT_EQ(*values_->count("numa"), 2U);
  ASSERT_TRUE(other->execute("ROLLBACK", "let others write").has_value());
  open();
  EXPECT_EQ(values_->get("numa", "a").value(), "after");
  EXPECT_EQ(values_->get("numa", "b").value(), std::nullopt);
  EXPECT_EQ(values_->get("numa", "c").value(), "new");
}

}  // namespace
}  // namespace topolet::store
