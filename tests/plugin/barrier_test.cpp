#include "core/plugin/guard/barrier.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/base/utf8.hpp"

namespace topolet::plugin {
namespace {

std::string cleaned(std::string_view text) { return sanitize_text({text.data(), text.size()}); }

TEST(CleanText, KeepsWhatIsFitToBeShown) {
  EXPECT_EQ(cleaned("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80"), "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(sanitize_text({nullptr, 5}), "");
}

TEST(CleanText, LeavesNothingThatIsNoUtf8) {
  EXPECT_EQ(cleaned("caf\xe9!"), "caf?!");
  EXPECT_EQ(cleaned("\xc3("), "?(");
  EXPECT_EQ(cleaned("\xc0\x80"), "??");            // overlong
  EXPECT_EQ(cleaned("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(cleaned("\xf4\x90\x80\x80"), "????");  // above U+10FFFF
  EXPECT_EQ(cleaned("\xff\xf8\x88\x80\x80\x80"), "??????");
  EXPECT_EQ(cleaned("end\xf0\x9f\x98"), "end???");
}

TEST(CleanText, HasNoControlCharacters) {
  EXPECT_EQ(cleaned("a\nb\x1b[2Jc\x7f\xc2\x9b"
                    "2J"),
            "a b [2Jc  2J");
  EXPECT_EQ(cleaned(std::string_view("a\0b", 3)), "a b");
}

TEST(CleanText, IsCutBetweenCharacters) {
  std::string text(kMaxPluginTextBytes - 1, 'x');
  EXPECT_EQ(cleaned(text + "\xc3\xa9"), text);
  EXPECT_EQ(cleaned(text + "yz"), text + "y");
  EXPECT_EQ(cleaned(text + "\xff"
                           "z"),
            text + "?");
}

TEST(IsUtf8, TakesAllOfIt) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("na\xc3\xafve"));
  EXPECT_FALSE(is_utf8("na\xc3"));
}

TEST(ThrownBy, SurvivesAnExceptionWithoutWords) {
  struct Wordless : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  EXPECT_EQ(thrown_by([] { throw Wordless(); }), "threw: ");
  EXPECT_EQ(thrown_by([] { throw std::runtime_error("boom\n"); }), "threw: boom ");
  EXPECT_EQ(thrown_by([] { throw 7; }), "threw something that is not a std::exception");
  EXPECT_FALSE(thrown_by([] {}).has_value());
}

}  // namespace
}  // namespace topolet::plugin
