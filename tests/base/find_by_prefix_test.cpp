#include "core/base/find_by_prefix.hpp"

#include <gtest/gtest.h>

#include <map>

namespace topolet {
namespace {

TEST(FindByPrefix, TakesFullIdsAndUnambiguousBeginnings) {
  const std::map<std::string, int> map = {{"abc1", 1}, {"abc2", 2}, {"abd", 3}, {"abd9", 4}};
  const auto value = [&](const std::string& id) {
    const auto found = find_by_prefix(map, id);
    return found == map.end() ? 0 : found->second;
  };
  EXPECT_EQ(value("abc1"), 1);
  EXPECT_EQ(value("abc"), 0) << "ambiguous";
  EXPECT_EQ(value("abd"), 3) << "a full id wins";
  EXPECT_EQ(value("abd9"), 4);
  EXPECT_EQ(value("abe"), 0);
  EXPECT_EQ(value(""), 0);
  EXPECT_EQ(find_by_prefix(std::map<std::string, int>{{"xyz", 5}}, "x")->second, 5);
}

}  // namespace
}  // namespace topolet
