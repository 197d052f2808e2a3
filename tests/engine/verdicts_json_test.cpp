#include "core/engine/state/verdicts_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::engine {
namespace {

using ::testing::HasSubstr;

placement::Verdicts full_verdicts() {
  return {3,
          {{"0", 64, false, {{"numa", "score", 64, "fits one node"}, {"gpu", "abstain", 0, "no device"}}},
           {"0-1", 0, true, {{"numa", "reject", 0, "one node is enough"}}}},
          {{"numa: one node is enough", 1}},
          {"smt: late"},
          {"gpu: would leave no CPU"},
          {"gpu/far", "numa/one-node"}};
}

constexpr const char* kFullText =
    R"({"candidates":3,"best":[)"
    R"({"nodes":"0","score":64,"words":[["numa","score",64,"fits one node"],["gpu","abstain",0,"no device"]]},)"
    R"({"nodes":"0-1","score":0,"rejected":true,"words":[["numa","reject",0,"one node is enough"]]}],)"
    R"("rejected":{"numa: one node is enough":1},"lost_votes":["smt: late"],"dropped":["gpu: would leave no CPU"],)"
    R"("codes":["gpu/far","numa/one-node"]})";

TEST(VerdictsJson, WritesAllOfThem) { EXPECT_EQ(encode_verdicts(full_verdicts()), kFullText); }

TEST(VerdictsJson, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(encode_verdicts({300, {}, {}, {}, {}}), R"({"candidates":300,"best":[]})");
}

TEST(VerdictsJson, ReadsWhatItWrites) {
  for (const placement::Verdicts& verdicts : {full_verdicts(), placement::Verdicts()}) {
    const auto read = decode_verdicts(encode_verdicts(verdicts));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(encode_verdicts(*read), encode_verdicts(verdicts));
  }
}

TEST(VerdictsJson, ReplacesBytesThatAreNotUtf8) {
  const placement::Verdicts odd{1, {{"0", 1, false, {{"gpu", "score", 1, "\xff"}}}}, {}, {}, {}};
  EXPECT_THAT(encode_verdicts(odd), HasSubstr("\xef\xbf\xbd"));
}

TEST(VerdictsJson, RefusesToReadAnythingElse) {
  for (const char* text : {"", "{", "[]", "{}", R"({"candidates":1,"best":[{"nodes":"0"}]})",
                           R"({"candidates":1,"best":[{"nodes":"0","score":1,"words":[["numa"]]}]})"}) {
    const auto read = decode_verdicts(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code, Code::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace topolet::engine
