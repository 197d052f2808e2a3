#include "core/base/pattern.hpp"

#include <gtest/gtest.h>

namespace topolet {
namespace {

bool matches(const std::string& pattern, const std::string& name) { return first_match({pattern}, name) != nullptr; }

TEST(Pattern, MatchesWholeNames) {
  EXPECT_TRUE(matches("kube-system", "kube-system"));
  EXPECT_FALSE(matches("kube", "kube-system"));
  EXPECT_FALSE(matches("kube-system", "kube"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
}

TEST(Pattern, TakesAnyTextForAStar) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "a/b"));
  EXPECT_TRUE(matches("kube-*", "kube-"));
  EXPECT_TRUE(matches("*-system", "kube-system"));
  EXPECT_FALSE(matches("*-system", "kube-system-2"));
  EXPECT_TRUE(matches("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(matches("a**c", "ac"));
  EXPECT_FALSE(matches("a*b*c", "acb"));
  EXPECT_TRUE(matches("*ab", "aab"));
}

TEST(Pattern, HasNoOtherSpecialCharacter) {
  EXPECT_TRUE(matches("a?", "a?"));
  EXPECT_FALSE(matches("a?", "ab"));
  EXPECT_TRUE(matches("[ab]", "[ab]"));
  EXPECT_FALSE(matches("[ab]", "a"));
  EXPECT_TRUE(matches("a\\*", "a\\b"));
}

TEST(Pattern, IsTheFirstThatMatches) {
  const std::vector<std::string> patterns = {"a*", "*b"};
  EXPECT_EQ(first_match(patterns, "ab"), &patterns[0]);
  EXPECT_EQ(first_match(patterns, "xb"), &patterns[1]);
  EXPECT_EQ(first_match(patterns, "x"), nullptr);
}

}  // namespace
}  // namespace topolet
