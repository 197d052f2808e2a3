#include "core/base/escape.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/base/utf8.hpp"

namespace topolet {
namespace {

using namespace std::string_literals;

TEST(Escaped, LeavesWhatIsHarmless) {
  for (const char* text : {"", "default/web/main", "naïve – 漢字 🙂 µs …", "~ \"quoted\" 'too'"}) {
    EXPECT_EQ(escaped(text), text);
  }
}

TEST(Escaped, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(escaped("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(escaped("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(escaped("\0\a\b\v\f\x7f"s), "\\x00\\x07\\x08\\x0b\\x0c\\x7f");
  EXPECT_EQ(escaped("\u009b2J"), "\\u{9b}2J");
  EXPECT_EQ(escaped("\u0085"), "\\u{85}");
}

TEST(Escaped, ShowsWhatIsInvisibleOrReorders) {
  for (const auto& [text, shown] :
       std::initializer_list<std::pair<const char*, const char*>>{{"\u202e", "\\u{202e}"},
                                                                  {"\u202a", "\\u{202a}"},
                                                                  {"\u2066", "\\u{2066}"},
                                                                  {"\u2069", "\\u{2069}"},
                                                                  {"\u200e", "\\u{200e}"},
                                                                  {"\u200f", "\\u{200f}"},
                                                                  {"\u061c", "\\u{61c}"},
                                                                  {"\u2028", "\\u{2028}"},
                                                                  {"\u2029", "\\u{2029}"},
                                                                  {"\u200b", "\\u{200b}"},
                                                                  {"\ufeff", "\\u{feff}"},
                                                                  {"\u00ad", "\\u{ad}"},
                                                                  {"\U000e0041", "\\u{e0041}"}}) {
    EXPECT_EQ(escaped(text), shown);
  }
}

TEST(Escaped, ShowsEachByteThatIsNoUtf8) {
  EXPECT_EQ(escaped("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(escaped("\x9b"), "\\x9b");                    // C1 as a single byte
  EXPECT_EQ(escaped("\xc0\x8a"), "\\xc0\\x8a");           // overlong
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(escaped("\xe2\x80"), "\\xe2\\x80");           // cut
}

TEST(Escaped, CanBeReadBack) {
  EXPECT_EQ(escaped("\\n"), "\\\\n");
  EXPECT_EQ(escaped("\\x1b"), "\\\\x1b");
  EXPECT_NE(escaped("\\\n"), escaped("\\\\n"));
}

TEST(EscapedJson, KeepsTheMeaning) {
  EXPECT_EQ(escaped_json(R"({"a":"b\n"})"), R"({"a":"b\n"})");
  EXPECT_EQ(escaped_json("\"\x7f\u009b\u202e\u2028é\""), "\"\\u007f\\u009b\\u202e\\u2028é\"");
  EXPECT_EQ(escaped_json("\"\U000e0041\""), "\"\\udb40\\udc41\"");
  EXPECT_EQ(escaped_json("\"\xff\""), "\"\\ufffd\"");
}

TEST(PrintErrorLine, WritesOneLine) {
  testing::internal::CaptureStderr();
  print_error_line("topolet: no pod 'a\nb'");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "topolet: no pod 'a\\nb'\n");
}

TEST(Utf8, IsWhatTheStandardSays) {
  EXPECT_TRUE(is_utf8("é漢🙂"));
  for (const char* text : {"\xff", "a\x80", "\xc0\x8a", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x80"}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

}  // namespace
}  // namespace topolet
