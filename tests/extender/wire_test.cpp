// The JSON of schedulers, right and wrong.
#include "cluster/extender/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace topolet::extender {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WireTest, ReadsWhatASchedulerAsks) {
  const auto args = read_extender_args(
      R"({"Pod":{"metadata":{"name":"a","uid":"u-1","resourceVersion":"7"}},"Nodes":null,"NodeNames":["n1","n\u00e92"]})");
  ASSERT_TRUE(args.has_value()) << args.error().message;
  EXPECT_THAT(args->node_names, ElementsAre("n1", "né2"));
  EXPECT_EQ(args->pod_version, "u-1 7");
  EXPECT_EQ(json::parse(args->pod_json)["metadata"]["name"], "a");
  const auto binding = read_binding_args(R"({"PodName":"a","PodNamespace":"d","PodUID":"u","Node":"n1"})");
  ASSERT_TRUE(binding.has_value());
  EXPECT_EQ(binding->node, "n1");
}

TEST(WireTest, ExplainsWhatItCannotRead) {
  const auto args_error = [](const std::string& body) {
    const auto read = read_extender_args(body);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(args_error(""), HasSubstr("it is no JSON object"));
  EXPECT_THAT(args_error(R"({"Pod":{},"NodeNames":["n1")"), HasSubstr("it is no JSON object"));
  EXPECT_THAT(args_error("[]"), HasSubstr("it is no JSON object"));
  EXPECT_THAT(args_error(std::string(3000, '[')), HasSubstr("it is no JSON object"));
  EXPECT_THAT(args_error(R"({"NodeNames":[]})"), HasSubstr("it has no Pod"));
  EXPECT_THAT(args_error(R"({"Pod":{}})"), HasSubstr("it has no NodeNames"));
  EXPECT_THAT(args_error(R"({"Pod":{},"NodeNames":[1]})"), HasSubstr("no text"));
  EXPECT_THAT(args_error(R"({"Pod":{},"Nodes":{"items":[]},"NodeNames":null})"), HasSubstr("nodeCacheCapable: true"));
  const auto binding_error = [](const std::string& body) { return read_binding_args(body).error().message; };
  EXPECT_THAT(binding_error(R"({"PodName":"a","PodNamespace":"d","PodUID":"u"})"), HasSubstr("it has no Node"));
  EXPECT_THAT(binding_error(R"({"PodName":"../a","PodNamespace":"d","PodUID":"u","Node":"n"})"),
              HasSubstr("its PodName is no name"));
}

TEST(WireTest, ReadsWhomASchedulerWouldEvict) {
  const auto meta = read_preemption_args(
      R"({"Pod":{"metadata":{"uid":"u","resourceVersion":"7"}},"NodeNameToVictims":null,"NodeNameToMetaVictims":
          {"n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1}}})");
  ASSERT_TRUE(meta.has_value()) << meta.error().message;
  EXPECT_EQ(meta->pod_version, "u 7");
  ASSERT_EQ(meta->nodes.size(), 1U);
  EXPECT_EQ(meta->nodes[0].uids, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(meta->nodes[0].budget_violations, 1);
  EXPECT_EQ(json::parse(preemption_result_text(meta->nodes)), json::parse(R"({"NodeNameToMetaVictims":
      {"n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1}}})"));
  const auto whole = read_preemption_args(
      R"({"Pod":{},"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"uid":"a"}}],"NumPDBViolations":0}}})");
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  EXPECT_EQ(whole->nodes[0].uids, (std::vector<std::string>{"a"}));
  for (const char* wrong : {"{}", R"({"Pod":{}})", R"({"Pod":{},"NodeNameToMetaVictims":{"n1":null}})",
                            R"({"Pod":{},"NodeNameToMetaVictims":{"n1":{"Pods":[{}]}}})"})
    EXPECT_FALSE(read_preemption_args(wrong).has_value()) << wrong;
  EXPECT_EQ(preemption_result_text({}), R"({"NodeNameToMetaVictims":{}})");
}

TEST(WireTest, WritesWhatGoReads) {
  FilterResult result;
  result.node_names = {"n1", "a\"b"};
  result.unresolvable.emplace_back("n2", "no zone, \"or\" so");
  EXPECT_EQ(json::parse(filter_result_text(result)),
            json::parse(R"({"Nodes":null,"NodeNames":["n1","a\"b"],"FailedNodes":null,
              "FailedAndUnresolvableNodes":{"n2":"no zone, \"or\" so"},"Error":""})"));
  EXPECT_EQ(json::parse(filter_result_text({}))["NodeNames"], json::array())
      << "null would be taken for a scheduler that is told whole nodes";
  EXPECT_EQ(json::parse(filter_error_text("no\n"))["Error"], "no\n");
  EXPECT_EQ(json::parse(priorities_text({{"n1", 10}, {"n2", 0}})),
            json::parse(R"([{"Host":"n1","Score":10},{"Host":"n2","Score":0}])"));
  EXPECT_EQ(binding_result_text(""), R"({"Error":""})");
}

}  // namespace
}  // namespace topolet::extender
