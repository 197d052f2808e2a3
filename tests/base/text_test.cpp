#include "core/base/text.hpp"

#include <gtest/gtest.h>

#include "core/base/index_set.hpp"

namespace topolet {
namespace {

TEST(Text, TrimmedIsWithoutTheWhiteSpaceAroundIt) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, PrintableHasNothingThatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[31m\n\xc3\xa9~", 100), "a?[31m???~");
}

TEST(Text, PrintableCutsWhatIsTooLong) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
}

TEST(Text, OneIsCountedInTheSingular) {
  EXPECT_EQ(counted(0, "CPU"), "0 CPUs");
  EXPECT_EQ(counted(1, "CPU"), "1 CPU");
  EXPECT_EQ(counted(2, "CPU"), "2 CPUs");
}

TEST(Text, ASetIsNamedInTheSingularIfItHasOne) {
  EXPECT_EQ(named("CPU", CpuSet{3}), "CPU 3");
  EXPECT_EQ(named("CPU", CpuSet{0, 1, 2, 8}), "CPUs 0-2,8");
  EXPECT_EQ(named("node", NodeSet{0, 1}), "nodes 0-1");
}

TEST(Text, AnOrListEndsWithOr) {
  EXPECT_EQ(or_list({}), "");
  EXPECT_EQ(or_list({"a"}), "a");
  EXPECT_EQ(or_list({"a", "b"}), "a or b");
  EXPECT_EQ(or_list({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace topolet
