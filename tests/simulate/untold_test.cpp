// Runtimes that tell less of their containers than containerd.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/database.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string tells(const std::string& what) { return fmt::format(R"({{"op":"runtime","tells":"{}"}})", what); }
constexpr const char* kRestart = R"({"op":"restart"})";
constexpr const char* kRestartAnew = R"({"op":"restart","database":"lost"})";
constexpr const char* kTenSeconds = R"({"op":"clock","advance_s":10})";

class UntoldTest : public ::testing::Test {
 protected:
  UntoldTest() {
    node_.guaranteed("trader", 2);
    node_.burstable("web", 1500);
    node_.besteffort("idle");
  }

  std::vector<std::string> rows(const std::string& sql) const {
    auto database = store::Database::open(directory_.path() / "state.db", store::Database::Access::kReadOnly);
    std::vector<std::string> all;
    auto statement = database->prepare(sql, "read");
    while (*statement->next()) all.push_back(statement->text(0));
    return all;
  }
  std::vector<std::string> known() const {
    return rows(
        "SELECT pod_uid || ' ' || qos || ' ' || cpu_request_milli || ' ' || cpu_request_certainty || ' ' || mode || ' "
        "' "
        "|| cpus FROM allocation ORDER BY pod_uid");
  }
  std::vector<std::string> drifts() const {
    return rows("SELECT pod_uid FROM decided WHERE event = 'drift' ORDER BY decision");
  }

  TempDir directory_;
  SimulatedNode node_{"node:2 core:4 pu:1", {}, {.state_dir = directory_.path()}};
};

TEST_F(UntoldTest, IsReadByWhateverMeansThereAre) {
  const std::vector<std::string> before = known();
  EXPECT_THAT(before, ElementsAre("idle besteffort 0 told shared 2-7", "trader guaranteed 2000 told exclusive 0-1",
                                  "web burstable 1500 told shared 2-7"));
  for (const char* runtime : {"containerd", "crio", "dockerd"}) {
    node_.apply(tells(runtime));
    node_.apply(kRestartAnew);
    node_.apply(kTenSeconds);
    EXPECT_EQ(known(), before) << runtime;
    EXPECT_THAT(drifts(), IsEmpty()) << runtime;
  }
}

TEST_F(UntoldTest, IsNoDriftAfterARestart) {
  const std::vector<std::string> before = known();
  for (const char* runtime : {"crio", "dockerd", "process", "nothing"}) {
    node_.apply(tells(runtime));
    node_.apply(kRestart);
    node_.apply(kTenSeconds);
    EXPECT_EQ(known(), before) << runtime;
    EXPECT_THAT(drifts(), IsEmpty()) << runtime;
  }
}

TEST_F(UntoldTest, IsUnknownWhereNobodyTellsIt) {
  node_.apply(tells("process"));
  node_.apply(kRestartAnew);
  EXPECT_THAT(known(), ElementsAre("idle unknown 1000 unknown shared 2-7", "trader unknown 1000 unknown shared 0-1",
                                   "web unknown 1000 unknown shared 2-7"));
  node_.apply(tells("dockerd"));
  node_.apply(kTenSeconds);
  EXPECT_THAT(known(), ElementsAre("idle besteffort 0 told shared 2-7", "trader guaranteed 2000 told shared 0-1",
                                   "web burstable 1500 told shared 2-7"))
      << "it is read once it can be, and nobody is moved for that";
}

TEST_F(UntoldTest, MayBeAnywhereWhereNothingTells) {
  node_.apply(tells("nothing"));
  node_.apply(kRestartAnew);
  EXPECT_THAT(known(), ElementsAre("idle unknown 1000 unknown shared 0-7", "trader unknown 1000 unknown shared 0-7",
                                   "web unknown 1000 unknown shared 0-7"));
}

TEST_F(UntoldTest, IsNotTakenFromWhoIsUnknown) {
  node_.apply(tells("process"));
  node_.apply(kRestartAnew);
  const OperationResult most = node_.guaranteed("most", 7);
  EXPECT_EQ(most.outcome, "denied") << "trader would be left without what it has: " << most.cpus.to_string();
  EXPECT_NE(node_.guaranteed("some", 3).outcome, "denied");
}

TEST_F(UntoldTest, IsToldByAnUpdate) {
  node_.apply(tells("process"));
  node_.apply(kRestartAnew);
  node_.apply(R"({"op":"update","pod":"web","container":"main","cpu_request_milli":500})");
  EXPECT_THAT(rows("SELECT cpu_request_milli || ' ' || cpu_request_certainty FROM allocation WHERE pod_uid = 'web'"),
              ElementsAre("500 told"));
}

TEST(RuntimeLine, SaysWhatARuntimeTells) {
  EXPECT_EQ(parse_operation(tells("crio"))->tells, RuntimeTells::kSpec);
  EXPECT_FALSE(parse_operation(tells("crio"))->next);
  EXPECT_THAT(parse_operation(tells("cri-o")).error().message, HasSubstr("did you mean"));
  EXPECT_THAT(parse_operation(R"({"op":"runtime"})").error().message, HasSubstr("runtime needs \"next\""));
  EXPECT_THAT(parse_operation(R"({"op":"runtime","tells":"crio","call":"create"})").error().message,
              HasSubstr("is about its \"next\" answer"));
}

/// Two nodes of 64 GiB, and what is bound there when the database is lost.
class UntoldMemoryTest : public ::testing::Test {
 protected:
  OperationResult ask(const std::string& op, const std::string& pod, int milli, int gib) {
    return node_.apply(fmt::format(
        R"({{"op":"{}","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{},"memory_limit":{}}})",
        op, pod, milli, milli, static_cast<std::int64_t>(gib) << 30));
  }
  OperationResult create(const std::string& pod, int milli, int gib) {
    node_.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed"}})", pod));
    return ask("create", pod, milli, gib);
  }
  std::string mems_of(const std::string& pod) {
    for (const RunningContainer& one : node_.runtime().running()) {
      if (one.pod == pod) return one.mems.to_string();
    }
    return "?";
  }

  SimulatedNode node_{"pack:2 numa:1(memory=68719476736) core:8 pu:1", {"--plugins.enable=numa", "--numa.memory=bind"}};
};

TEST_F(UntoldMemoryTest, StaysWhereItIsBoundAndIsDecidedOn) {
  create("first", 4000, 1);
  ASSERT_EQ(create("web", 500, 10).mems.to_string(), "1");
  ASSERT_EQ(create("trader", 2000, 40).mems.to_string(), "0");
  node_.apply(R"({"op":"remove_pod","pod":"first"})");
  for (const char* runtime : {"containerd", "crio", "dockerd"}) {
    node_.apply(tells(runtime));
    node_.apply(kRestartAnew);
    EXPECT_EQ(mems_of("web"), "1") << runtime;
    EXPECT_EQ(mems_of("trader"), "0") << runtime;
    const OperationResult web = ask("update", "web", 500, 11);
    EXPECT_EQ(web.mems.to_string(), "1") << runtime;
    EXPECT_EQ(web.cpus, CpuSet::range(8, 15)) << runtime << ": beside its memory";
    EXPECT_EQ(ask("update", "web", 500, 10).outcome, "ok");
  }
  // 64 GiB are too few for it.
  EXPECT_EQ(ask("update", "trader", 2000, 80).mems.to_string(), "0-1");
  EXPECT_EQ(mems_of("trader"), "0-1");
}

TEST_F(UntoldMemoryTest, IsNotBoundWhileItRuns) {
  create("web", 500, 10);
  node_.apply(tells("nothing"));
  node_.apply(kRestartAnew);
  EXPECT_EQ(ask("update", "web", 500, 11).mems.to_string(), "") << "nobody tells where its memory is";
}

}  // namespace
}  // namespace topolet::simulate
