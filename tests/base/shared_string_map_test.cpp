#include "core/base/shared_string_map.hpp"

#include <gtest/gtest.h>

namespace topolet {
namespace {

TEST(SharedStringMap, ACopyKeepsItsEntriesWhenTheOtherChanges) {
  const SharedStringMap first = {{"a", "1"}, {"b", "2"}};
  SharedStringMap second = first;
  second.erase("b");
  second.erase("never there");
  EXPECT_EQ(first, (SharedStringMap{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(second, (SharedStringMap{{"a", "1"}}));
}

TEST(SharedStringMap, ComparesByItsEntries) {
  SharedStringMap emptied = {{"a", "1"}};
  EXPECT_NE(emptied, SharedStringMap());
  emptied.erase("a");
  EXPECT_EQ(emptied, SharedStringMap());
  EXPECT_TRUE(emptied.empty());
  EXPECT_EQ(emptied.begin(), emptied.end());
}

}  // namespace
}  // namespace topolet
