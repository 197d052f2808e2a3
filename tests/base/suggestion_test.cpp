#include "core/base/suggestion.hpp"

#include <gtest/gtest.h>

namespace topolet {
namespace {

TEST(EditDistance, CountsLetters) {
  EXPECT_EQ(edit_distance("policy", "policy"), 0U);
  EXPECT_EQ(edit_distance("polcy", "policy"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("sp", "ps"), 1U);
}

TEST(Suggestion, NamesNothingThatIsFar) {
  const std::vector<std::string> known = {"ps", "at", "status", "explain", "web.v1"};
  EXPECT_EQ(suggestion("sp", known), "; did you mean ps?");
  EXPECT_EQ(suggestion("stauts", known), "; did you mean status?");
  EXPECT_EQ(suggestion("explian", known, "--"), "; did you mean --explain?");
  for (const char* far : {"", "x", "xy", "foo", "list", "database", "db.v2-x"})
    EXPECT_EQ(suggestion(far, known), "") << far;
  EXPECT_EQ(suggestion("x", {}), "");
  EXPECT_EQ(suggestion(std::string(1'000'000, 'x'), known), "");
}

}  // namespace
}  // namespace topolet
