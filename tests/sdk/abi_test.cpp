#include <gtest/gtest.h>
#include <topolet/abi.h>

#include <cstring>

namespace {

TEST(AbiHas, IsFalseForAFieldThatAnOlderWriterDidNotKnow) {
  topolet_topology topology{};
  topology.struct_size = offsetof(topolet_topology, distances);
  EXPECT_TRUE(TOPOLET_HAS(&topology, package_count));
  EXPECT_FALSE(TOPOLET_HAS(&topology, distances));
  topology.struct_size += sizeof(topology.distances) - 1;
  EXPECT_FALSE(TOPOLET_HAS(&topology, distances));
  topology.struct_size += 1;
  EXPECT_TRUE(TOPOLET_HAS(&topology, distances));
}

TEST(AbiAt, StepsByTheWritersStride) {
  struct NewerPu {
    topolet_pu known;
    std::uint64_t news;
  };
  const NewerPu pus[2] = {{{4, 0, 0, 0, 0, 0}, 1}, {{7, 0, 0, 0, 0, 0}, 2}};
  EXPECT_EQ(TOPOLET_AT(topolet_pu, pus, sizeof(NewerPu), 1)->os_index, 7U);
  EXPECT_TRUE(TOPOLET_STRIDE_HAS(sizeof(NewerPu), topolet_pu, package));
  EXPECT_FALSE(TOPOLET_STRIDE_HAS(offsetof(topolet_pu, package), topolet_pu, package));
}

TEST(AbiSet, HasOnlyWhatItsWordsSay) {
  const std::uint64_t words[2] = {1U << 3, 1U << 1};
  const topolet_set set = {words, 2};
  EXPECT_TRUE(topolet_set_has(set, 3));
  EXPECT_TRUE(topolet_set_has(set, 65));
  EXPECT_FALSE(topolet_set_has(set, 1));
  EXPECT_FALSE(topolet_set_has(set, 128));
  EXPECT_FALSE(topolet_set_has(topolet_set{nullptr, 0}, 0));
}

TEST(AbiString, EqualsWholeTextsOnly) {
  const topolet_str string = TOPOLET_STR("topolet.score/1");
  EXPECT_TRUE(topolet_str_is(string, "topolet.score/1"));
  EXPECT_FALSE(topolet_str_is(string, "topolet.score/10"));
  EXPECT_FALSE(topolet_str_is(string, "topolet.score/"));
  EXPECT_TRUE(topolet_str_is(topolet_str{nullptr, 0}, ""));
}

}  // namespace
