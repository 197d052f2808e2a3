#include "core/replay/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace topolet::replay {
namespace {

using ::testing::HasSubstr;

constexpr const char* kBegin = R"({"op":"record","version":2,"topolet":"1.2","at":1})"
                               "\n";

std::string error_of(const std::string& record) {
  std::istringstream in(record);
  const auto replayed = replay(in, {});
  return replayed ? "" : replayed.error().message;
}

TEST(Replay, TellsARecordByItsBeginWhateverItsVersion) {
  std::istringstream record(R"({"op":"record","version":99})");
  EXPECT_TRUE(is_record(record));
  std::istringstream workload(R"({"op":"run_pod","pod":"a"})");
  EXPECT_FALSE(is_record(workload));
  std::istringstream empty("");
  EXPECT_FALSE(is_record(empty));
  std::string line;
  EXPECT_TRUE(std::getline(workload, line)) << "nothing of it was read away";
}

TEST(Replay, ReadsNoRecordOfAnotherVersion) {
  EXPECT_EQ(error_of(R"({"op":"record","version":3,"topolet":"9.1"})"),
            "line 1: it is a record of version 3, written by topolet 9.1; this topolet reads version 2");
}

TEST(Replay, NamesALineThatIsNoneOfARecords) {
  EXPECT_THAT(error_of(std::string(kBegin) + R"({"op":"decide"})"), HasSubstr("line 2: it is no line of a record: "));
  EXPECT_THAT(error_of(std::string(kBegin) + R"({"op":"state","plugin":"p"})"), HasSubstr("line 2: "));
  EXPECT_THAT(error_of(std::string(kBegin) + "{\n" + R"({"op":"tick"})"), HasSubstr("line 2: this is not JSON"));
  EXPECT_THAT(error_of(R"({"op":"tick"})"), HasSubstr("line 1: it does not begin as a record does"));
}

TEST(Replay, LeavesOutALineThatADaemonWasKilledOver) {
  std::istringstream in(std::string(kBegin) + R"({"op":"dec)" + "\n" + kBegin + R"({"op":)");
  const auto result = replay(in, {});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->torn_lines, 2U);
  EXPECT_EQ(result->begins, 2U);
}

TEST(Replay, SaysWhichConfigurationIsNotAcceptedHere) {
  EXPECT_THAT(
      error_of(std::string(kBegin) + R"({"op":"configuration","number":1,"values":[["plugins","enable","nowhere"]]})"),
      HasSubstr("line 2: the configuration is not accepted: "));
}

TEST(Replay, LeavesOperationsToOthers) {
  std::istringstream in(std::string(kBegin) + R"({"op":"create","pod":"a","container":"b"})" + "\n" +
                        R"({"op":"outcome","pod":"a","container":"b","outcome":"bound"})");
  const auto result = replay(in, {});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->operations, 1U);
  EXPECT_EQ(result->decisions, 0U);
}

}  // namespace
}  // namespace topolet::replay
