#include "core/simulate/operation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Operation parsed(const std::string& line) {
  const auto operation = parse_operation(line);
  EXPECT_TRUE(operation.has_value()) << operation.error().message;
  return operation ? *operation : Operation();
}

std::string refusal(const std::string& line) {
  const auto operation = parse_operation(line);
  return operation ? "it was taken" : operation.error().message;
}

TEST(Operation, ReadsAContainerAsItsSpecSaysIt) {
  const Operation create = parsed(R"({"op":"create","pod":"p","container":"c","attempt":2,"cpu_request_milli":1500,
      "cpu_limit_milli":2000,"memory_limit":1024,"hugepages":{"hugepages-2Mi":4194304,"1GB":0},
      "devices":["/dev/nvidia0"],"cdi_devices":["nvidia.com/gpu=0"],"env":{"A":"b"},"annotations":{"k":"v"}})");
  EXPECT_EQ(create.kind, OperationKind::kCreate);
  EXPECT_EQ(create.attempt, 2U);
  EXPECT_EQ(create.resources.cpu_request_milli, 1500);
  EXPECT_EQ(create.resources.memory_request, std::nullopt);
  EXPECT_THAT(create.resources.hugepages, ElementsAre(Pair("1GB", 0), Pair("2MB", 4194304)));
  EXPECT_THAT(create.devices, ElementsAre("/dev/nvidia0"));
  EXPECT_THAT(create.env, ElementsAre(Pair("A", "b")));
}

TEST(Operation, ReadsWhatTheCriCarries) {
  const Operation create = parsed(R"({"op":"create","pod":"p","container":"c","cpu_shares":2048,"cpu_quota":-1,
      "cpu_period":100000,"oom_score_adj":-997,"memory_limit_in_bytes":7,"cgroup_parent":"/kubepods/podx"})");
  EXPECT_EQ(create.resources.cpu_quota, -1);
  EXPECT_EQ(create.resources.oom_score_adj, -997);
  EXPECT_EQ(create.cgroup_parent, "/kubepods/podx");
}

TEST(Operation, ReadsAllThatIsMeasured) {
  const Operation container = parsed(R"({"op":"load","pod":"p","container":"c","cpu_milli":7,"psi_some_permille":1,
      "throttled":true,"memory_bytes":3,"memory_psi_permille":4,"io_psi_permille":5,"age_ms":6})");
  EXPECT_EQ(container.cpu_milli, 7);
  EXPECT_TRUE(container.is_throttled);
  EXPECT_EQ(container.memory_bytes, 3);
  EXPECT_EQ(container.memory_psi_permille, 4U);
  EXPECT_EQ(container.io_psi_permille, 5U);
  const Operation cpu = parsed(R"({"op":"load","cpu":3,"used_milli":400,"effective_milli":900})");
  EXPECT_EQ(cpu.cpu, 3U);
  EXPECT_EQ(cpu.used_milli, 400);
  EXPECT_EQ(cpu.effective_milli, 900);
  EXPECT_EQ(parsed(R"({"op":"load","node":1,"used_milli":400})").used_milli, 400);
  EXPECT_EQ(parsed(R"({"op":"load","measured_for_s":30})").measured_for, std::chrono::seconds(30));
  EXPECT_FALSE(parsed(R"({"op":"load","cpu":3,"known":false})").known);
}

TEST(Operation, RefusesLoadOfNothingAndOfTwoThings) {
  EXPECT_THAT(refusal(R"({"op":"load","cpu_milli":7})"),
              HasSubstr("load needs \"pod\" and \"container\", or \"node\""));
  EXPECT_THAT(refusal(R"({"op":"load","pod":"p","container":"c","used_milli":7})"),
              HasSubstr("load says \"used_milli\" of pod and container, which has no such value"));
  EXPECT_THAT(refusal(R"({"op":"load","pod":"p","container":"c","node":1,"cpu_milli":7})"), HasSubstr("\"node\""));
  EXPECT_THAT(refusal(R"({"op":"load","node":1})"), HasSubstr("load needs \"effective_milli\" or \"used_milli\""));
  EXPECT_THAT(refusal(R"({"op":"load","pod":"p","container":"c"})"), HasSubstr("load needs \"cpu_milli\""));
}

TEST(Operation, ReadsWhenTheDaemonIsKilled) {
  EXPECT_EQ(parsed(R"({"op":"restart"})").kill_at, std::nullopt);
  EXPECT_EQ(parsed(R"({"op":"restart","at":"now"})").kill_at, std::nullopt);
  EXPECT_EQ(parsed(R"({"op":"restart","at":"before-answer"})").kill_at, KillPoint::At::kBeforeAnswer);
  EXPECT_EQ(parsed(R"({"op":"restart","at":"before-answer"})").calls, 1U);
  EXPECT_EQ(parsed(R"({"op":"restart","at":"after-answer","calls":3})").kill_at, KillPoint::At::kAfterAnswer);
  EXPECT_EQ(parsed(R"({"op":"restart","at":"after-answer","calls":3})").calls, 3U);
  EXPECT_EQ(parsed(R"({"op":"restart","at":"in-flight","repeat":false})").kill_at, KillPoint::At::kInFlight);
  EXPECT_FALSE(parsed(R"({"op":"restart","at":"in-flight","repeat":false})").repeat);
}

TEST(Operation, SaysWhatIsWrongWithALineAndWhatWouldBeRight) {
  EXPECT_THAT(refusal("{"), HasSubstr("this is not JSON"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("the line is not a JSON object"));
  EXPECT_THAT(refusal(R"({"pod":"p"})"), HasSubstr("no \"op\""));
  EXPECT_THAT(refusal(R"({"op":"creat","pod":"p"})"), HasSubstr("did you mean create?"));
  EXPECT_THAT(refusal(R"({"op":"create","pod":"p"})"), HasSubstr("create needs a \"container\""));
  EXPECT_THAT(refusal(R"({"op":"create","pod":"","container":"c"})"), HasSubstr("the \"pod\" of create is empty"));
  EXPECT_THAT(refusal(R"({"op":"create","pod":"p","container":"c","cpu_request_mili":1})"),
              HasSubstr("create has no field \"cpu_request_mili\"; did you mean cpu_request_milli?"));
  EXPECT_THAT(refusal(R"({"op":"create","pod":"p","container":"c","cpu_request_milli":-1})"),
              HasSubstr("cpu_request_milli must be 0 to"));
  EXPECT_THAT(refusal(R"({"op":"create","pod":"p","container":"c","cpu_request_milli":18446744073709551615})"),
              HasSubstr("cpu_request_milli must be 0 to"));
  EXPECT_THAT(refusal(R"({"op":"create","pod":"p","container":"c","cpu_request_milli":1.5})"),
              HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal(R"({"op":"occupy","cpus":"0-"})"), HasSubstr("cpus: "));
  EXPECT_THAT(refusal(R"({"op":"run_pod","pod":"p","qos":"Guaranteed"})"), HasSubstr("did you mean guaranteed?"));
  EXPECT_THAT(refusal(R"({"op":"device","path":"/dev/x"})"), HasSubstr("device needs either \"pci\""));
  EXPECT_THAT(refusal(R"({"op":"runtime","next":"yes"})"), HasSubstr("next is \"yes\""));
  EXPECT_THAT(refusal(R"({"op":"runtime","next":"lost","call":"own-updat"})"), HasSubstr("did you mean own-update?"));
  EXPECT_THAT(refusal(R"({"op":"restart","at":"before-anser"})"), HasSubstr("did you mean before-answer?"));
  EXPECT_THAT(refusal(R"({"op":"restart","when":"now"})"), HasSubstr("restart has no field \"when\""));
  EXPECT_THAT(refusal(R"({"op":"restart","at":"after-answer","calls":0})"), HasSubstr("calls must be 1 to"));
  EXPECT_THAT(refusal(R"({"op":"restart","calls":2})"), HasSubstr("\"at\" must be before-answer, after"));
  EXPECT_THAT(refusal(R"({"op":"restart","at":"in-flight","repeat":1})"), HasSubstr("repeat must be true or false"));
}

TEST(Operation, SetsTheWallClockForwardAndBack) {
  const auto back = parse_operation(R"({"op":"clock","wall_s":-31536000})");
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->wall_jump, std::chrono::seconds(-31'536'000));
  EXPECT_EQ(back->advance, std::chrono::seconds(0));
  const auto both = parse_operation(R"({"op":"clock","wall_s":60,"advance_s":20})");
  ASSERT_TRUE(both.has_value()) << both.error().message;
  EXPECT_EQ(both->wall_jump, std::chrono::seconds(60));
  EXPECT_EQ(both->advance, std::chrono::seconds(20));
  const auto neither = parse_operation(R"({"op":"clock"})");
  ASSERT_FALSE(neither.has_value());
  EXPECT_NE(neither.error().message.find("wall_s"), std::string::npos);
}

}  // namespace
}  // namespace topolet::simulate
