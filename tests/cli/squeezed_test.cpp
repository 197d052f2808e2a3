// How the commands tell of containers that do not have the CPUs they should, because CPUs are offline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "store/database.hpp"
#include "tests/cli/made_up_status.hpp"
#include "tests/cli/run_topolet.hpp"
#include "tests/cli/told_story.hpp"

namespace topolet::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// Five CPUs, of which 0 is reserved. own has 1-2 and other 3 exclusively, any shares 4.
constexpr const char* kBefore = R"({"op":"run_pod","pod":"u1","name":"any","qos":"besteffort"}
{"op":"create","pod":"u1","container":"main"}
{"op":"run_pod","pod":"u2","name":"own","qos":"guaranteed"}
{"op":"create","pod":"u2","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000}
{"op":"run_pod","pod":"u3","name":"other","qos":"guaranteed"}
{"op":"create","pod":"u3","container":"main","cpu_request_milli":1000,"cpu_limit_milli":1000}
)";
/// own keeps 2, and any goes to the reserved CPU.
constexpr const char* kSqueezed = R"({"op":"offline","cpus":"1,4"}
)";
/// Nothing is left for any.
constexpr const char* kLeftToKernel = R"({"op":"offline","cpus":"0"}
)";
/// All go to the reserved CPU, and from there to the one that is back.
constexpr const char* kOneSharedIsBack = R"({"op":"offline","cpus":"1-4"}
{"op":"online","cpus":"4"}
)";
constexpr const char* kBack = R"({"op":"online","cpus":"0-1,4"}
)";

class SqueezedTest : public ToldStory {
 protected:
  void simulate(const std::string& story) {
    ToldStory::simulate("numa:1 core:5 pu:1", story, "[placement]\nreserved-cpus = 0\n");
  }
  /// Returns one column of `ps` for a pod.
  std::string told(const std::string& pod, const std::string& column) const {
    for (const json& row : answer({"ps"})) {
      if (row["pod"] == pod) return row.value(column, "it has no such column");
    }
    return "it is not there";
  }
  /// The first line of the answer with this word in it.
  std::string line_with(const std::string& word, const std::vector<std::string>& words) const {
    std::istringstream lines(said(words));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(word) != std::string::npos) return line;
    }
    return {};
  }
};

TEST_F(SqueezedTest, IsMarkedByPsAndToldByExplain) {
  simulate(std::string(kBefore) + kSqueezed);
  EXPECT_EQ(told("own", "squeezed"), "placed");
  EXPECT_EQ(told("any", "squeezed"), "placed");
  EXPECT_EQ(told("any", "mode"), "reserved");
  EXPECT_EQ(told("other", "squeezed"), "");
  EXPECT_THAT(line_with("POD", {"ps"}), HasSubstr("MEMS  SQUEEZED  OVERRULED  SEEN ON  STUCK ON  BESIDE HOME  SINCE"));
  EXPECT_THAT(line_with("own", {"ps"}), HasSubstr("yes "));
  EXPECT_THAT(line_with("other", {"ps"}), Not(HasSubstr("yes ")));
  EXPECT_THAT(said({"explain", "own"}),
              AllOf(HasSubstr("\nsqueezed now: CPUs are offline or must not be used, and no place as it should be"),
                    HasSubstr("\nit should have exclusive CPUs 1-2; bring CPUs online")));
  EXPECT_THAT(said({"explain", "any"}), HasSubstr("it should have those of CPUs 0-4 that are in the shared pool; "));
  EXPECT_THAT(said({"explain", "other"}), Not(HasSubstr("squeezed")));
  const json own = answer({"explain", "own"});
  EXPECT_EQ(own["squeezed"], "placed");
  EXPECT_EQ(own["should_have"], json({{"mode", "exclusive"}, {"cpus", "1-2"}}));
  EXPECT_EQ(answer({"explain", "other"})["should_have"], nullptr);
}

TEST_F(SqueezedTest, IsToldOfWhoHasNoCpuLeft) {
  simulate(std::string(kBefore) + kSqueezed + kLeftToKernel);
  EXPECT_EQ(told("any", "squeezed"), "left-to-kernel");
  EXPECT_THAT(line_with("any", {"ps"}), HasSubstr("no CPU left"));
  EXPECT_THAT(said({"explain", "any"}),
              AllOf(HasSubstr("\nreserved where the kernel lets it run, not on CPUs 0, withheld"),
                    HasSubstr("\nreason when squeezed: none of CPUs 0,2-3 is left in the shared pool or reserved; "),
                    HasSubstr(" near node 0 (it cannot be placed: the shared pool has no CPU left; "),
                    HasSubstr("\nsqueezed now: no CPU is left that it may use"),
                    HasSubstr("it should have those of CPUs 0-4 that are in the shared pool; ")));
}

TEST_F(SqueezedTest, IsToldOfWhoSharesInsteadOfHavingCpusOfItsOwn) {
  simulate(std::string(kBefore) + kOneSharedIsBack);
  EXPECT_EQ(told("other", "mode"), "shared");
  EXPECT_EQ(told("other", "squeezed"), "placed");
  EXPECT_THAT(said({"explain", "other"}), HasSubstr("\nit should have exclusive CPUs 3; "));
}

TEST_F(SqueezedTest, IsNotToldOfAnybodyOnceCpusAreBack) {
  simulate(std::string(kBefore) + kSqueezed + kLeftToKernel + kBack);
  for (const char* pod : {"any", "own", "other"}) {
    EXPECT_EQ(told(pod, "squeezed"), "") << pod;
    EXPECT_THAT(said({"explain", pod}), Not(HasSubstr("squeezed now"))) << pod;
  }
  EXPECT_EQ(told("any", "mode"), "shared");
  EXPECT_EQ(told("own", "cpus"), "1-2");
}

TEST_F(SqueezedTest, ComesLastInWhatProgramsReadByPosition) {
  simulate(std::string(kBefore) + kSqueezed);
  EXPECT_THAT(line_with("pod", {"ps", "--format", "csv"}),
              EndsWith(",since,reason,squeezed,seen_on,overlapped,overruled_since,stuck_on,widened_by\r"));
  EXPECT_THAT(line_with("other", {"ps", "--format", "csv"}), EndsWith(",\"\"\r"));
  EXPECT_THAT(line_with("own", {"ps", "--format", "csv", "--wide"}), EndsWith(",placed,\"\",\"\",\"\",\"\",\"\"\r"));
}

TEST_F(SqueezedTest, IsNotReadFromADatabaseOfAnOlderTopoletd) {
  simulate(std::string(kBefore) + kSqueezed);
  {
    auto database = store::Database::open(state_.database(), store::Database::Access::kReadWrite);
    ASSERT_TRUE(database.has_value()) << database.error().message;
    ASSERT_TRUE(database->execute("PRAGMA user_version = 14", "test"));
  }
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"ps"}, {"explain", "own"}}) {
    EXPECT_THAT(
        state_.topolet(command).text,
        HasSubstr("has schema version 14, and this command needs 21; start this version of topoletd once with it"));
  }
}

std::string status_with(std::uint32_t squeezed, std::uint32_t left_to_kernel, std::vector<std::string> more = {}) {
  control::v1::StatusResponse status;
  status.set_squeezed(squeezed);
  status.set_left_to_kernel(left_to_kernel);
  return said_of_status(status, std::move(more));
}

TEST(SqueezedStatus, CountsThemAndSaysWhatToDo) {
  EXPECT_THAT(status_with(0, 0), Not(HasSubstr("squeezed")));
  EXPECT_THAT(status_with(1, 0), AllOf(HasSubstr("\nsqueezed     1 container: CPUs are offline"),
                                       HasSubstr("`topolet explain CONTAINER`"), Not(HasSubstr("without any CPU"))));
  EXPECT_THAT(status_with(3, 2), AllOf(HasSubstr("\nsqueezed     3 containers: "),
                                       HasSubstr("\n             2 of them without any CPU left: ")));
  const json none = json::parse(status_with(0, 0, {"--json"}));
  EXPECT_EQ(none["squeezed"], 0);
  const json some = json::parse(status_with(3, 2, {"--json"}));
  EXPECT_EQ(some["squeezed"], 3);
  EXPECT_EQ(some["left_to_kernel"], 2);
}

}  // namespace
}  // namespace topolet::testing
