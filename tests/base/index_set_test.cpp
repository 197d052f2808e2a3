#include "core/base/index_set.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace topolet {
namespace {

TEST(CpuSet, ReadsTheKernelsListFormat) {
  EXPECT_EQ(*CpuSet::parse("0-3,8"), (CpuSet{0, 1, 2, 3, 8}));
  EXPECT_EQ(*CpuSet::parse(" 5 , 1-2\n"), (CpuSet{1, 2, 5}));
  EXPECT_TRUE(CpuSet::parse("")->empty());
  EXPECT_TRUE(CpuSet::parse("\n")->empty());
}

TEST(CpuSet, NamesThePartItCannotRead) {
  for (const char* bad : {"a", "1,", ",1", "1-", "-1", "1-2-3", "0x1", "1 2", "4294967296"}) {
    EXPECT_FALSE(CpuSet::parse(bad).has_value()) << bad;
  }
  EXPECT_EQ(CpuSet::parse("0-3,7-5").error().message,
            "cannot read '7-5' in the list '0-3,7-5': the range runs backwards");
  EXPECT_EQ(CpuSet::parse("0-65536").error().code, Code::kInvalidArgument);
  EXPECT_TRUE(CpuSet::parse("65535").has_value());
}

TEST(CpuSet, WritesWhatItReads) {
  for (const char* list : {"", "0", "0-3,8", "1,3,5", "62-65", "63,127-128", "1023-1025,2047"}) {
    EXPECT_EQ(CpuSet::parse(list)->to_string(), list);
  }
}

TEST(CpuSet, IteratesInAscendingOrderAcrossWords) {
  const CpuSet set{200, 0, 63, 64};
  EXPECT_EQ(std::vector<std::uint32_t>(set.begin(), set.end()), (std::vector<std::uint32_t>{0, 63, 64, 200}));
  EXPECT_EQ(CpuSet{}.begin(), CpuSet{}.end());
  EXPECT_EQ(set.first(), 0U);
}

TEST(CpuSet, ComparesEqualHoweverItCameToBe) {
  CpuSet set{1, 700};
  set.erase(700);
  EXPECT_EQ(set, CpuSet{1});
  EXPECT_EQ((CpuSet{1, 700} & CpuSet{1, 2}), CpuSet{1});
  EXPECT_EQ((CpuSet{1, 700} - CpuSet{700}), CpuSet{1});
  EXPECT_TRUE((CpuSet{700} - CpuSet{700}).empty());
}

TEST(CpuSet, KnowsSubsetsAndIntersections) {
  EXPECT_TRUE((CpuSet{1, 70}).is_subset_of(CpuSet::range(0, 100)));
  EXPECT_FALSE((CpuSet{1, 170}).is_subset_of(CpuSet::range(0, 100)));
  EXPECT_TRUE((CpuSet{70}).intersects(CpuSet::range(64, 71)));
  EXPECT_FALSE((CpuSet{70}).intersects(CpuSet{6}));
  EXPECT_TRUE(CpuSet{}.is_subset_of(CpuSet{}));
  EXPECT_EQ(CpuSet::range(0, 2047).size(), 2048U);
}

}  // namespace
}  // namespace topolet
