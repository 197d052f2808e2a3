#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include "plugins/numa/policy.hpp"
#include "plugins/numa/quantities.hpp"

namespace topolet::numa {
namespace {

using sdk::testing::FakeHost;
using sdk::testing::Plugin;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Values = std::vector<std::pair<std::string, std::string>>;

/// Returns the error of create(); empty if it works.
std::string complaint(const Values& values) {
  FakeHost host;
  try {
    const Plugin plugin(topolet_plugin_v1, host, values);
  } catch (const std::exception& exception) {
    return exception.what();
  }
  return "";
}

TEST(NumaOptions, NamesBothOptionsThatCannotBeCombined) {
  const std::vector<std::pair<std::string, std::string>> clashes = {
      {"full-pcpus-only", "distribute-cpus-across-cores"},
      {"distribute-cpus-across-numa", "distribute-cpus-across-cores"},
      {"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"},
      {"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"}};
  for (const auto& [one, other] : clashes) {
    EXPECT_EQ(complaint({{one, "true"}, {other, "false"}}), "");
    EXPECT_THAT(complaint({{one, "true"}, {other, "true"}}),
                AllOf(HasSubstr(one), HasSubstr(other), Not(HasSubstr("\n"))));
  }
  EXPECT_THAT(complaint({{"align-by-socket", "true"}, {"policy", "single-numa-node"}}),
              AllOf(HasSubstr("align-by-socket"), HasSubstr("policy = single-numa-node")));
  EXPECT_EQ(complaint({{"align-by-socket", "true"},
                       {"policy", "restricted"},
                       {"full-pcpus-only", "true"},
                       {"distribute-cpus-across-numa", "true"},
                       {"prefer-closest-numa-nodes", "true"}}),
            "");
}

TEST(NumaOptions, ReadsReservedMemory) {
  EXPECT_EQ(ReservedMemory("").of(3), 0);
  EXPECT_EQ(ReservedMemory("1Gi").of(3), 1 << 30);
  const ReservedMemory by_node("0:1Gi,8:512Mi");
  EXPECT_EQ(by_node.of(0), 1 << 30);
  EXPECT_EQ(by_node.of(8), 512 << 20);
  EXPECT_EQ(by_node.of(1), 0);
}

TEST(NumaOptions, SaysWhichPartOfReservedMemoryIsWrong) {
  EXPECT_THAT(complaint({{"reserved-memory", "0:1Gi,1:much"}}),
              AllOf(HasSubstr("'1:much'"), HasSubstr("0:1Gi,1:512Mi")));
  for (const char* const wrong :
       {"x", "1Gi,2Gi", "0:1Gi,", "0:", ":1Gi", "-1", "1.5Gi", "0:1Gi,0:2Gi", "99999999999G"}) {
    EXPECT_THAT(complaint({{"reserved-memory", wrong}}), HasSubstr("reserved-memory")) << wrong;
  }
}

TEST(NumaQuantities, AreFormattedAsPeopleWriteThem) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1536 << 20), "1.5 GiB");
  EXPECT_EQ(format_bytes(512 << 20), "512.0 MiB");
  EXPECT_EQ(format_bytes((std::int64_t{1} << 30) - 1), "1023.9 MiB");
  EXPECT_EQ(format_bytes(INT64_MAX), "8191.9 PiB");
  EXPECT_EQ(format_milli(2000), "2");
  EXPECT_EQ(format_milli(1250), "1.25");
  EXPECT_EQ(format_milli(5), "0.005");
}

}  // namespace
}  // namespace topolet::numa
