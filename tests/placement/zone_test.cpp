#include "core/placement/zone.hpp"

#include <gmock/gmock.h>

#include "core/placement/reason_codes.hpp"
#include "core/placement/settings.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using ::testing::AllOf;
using testing::besteffort;
using testing::guaranteed;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TestNode;

using ZoneNames = std::vector<std::string>;

PlacementRules rules_on(const std::string& node) {
  PlacementRules rules;
  rules.node_name = node;
  return rules;
}

Workload zone_annotated(const std::string& json, const std::string& container = "main") {
  Workload workload = guaranteed(container, 2);
  workload.pod_annotations = {{"topolet.io/zone", json}};
  return workload;
}

/// "0-1"; "none" without a zone, or why the annotation is ignored or refused.
std::string read_of(const Workload& workload, const PlacementRules& rules = rules_on("n1")) {
  const Result<ZoneOfContainer> zone = read_zone(workload, rules);
  if (!zone) return zone.error().message;
  if (!zone->ignored.empty()) return zone->ignored;
  return zone->nodes ? zone->nodes->to_string() : "none";
}

constexpr const char* kOfTheExtender =
    R"({"v":1,"node":"n1","zones":[0,1],"containers":{"main":[1],"side":[]},"by":"topolet-extender","gen":817})";

TEST(Zone, IsWhatTheAnnotationHasForTheContainer) {
  EXPECT_EQ(read_of(zone_annotated(kOfTheExtender)), "1");
  EXPECT_EQ(read_of(zone_annotated(kOfTheExtender, "side")), "none") << "no nodes are no zone";
  EXPECT_EQ(read_of(zone_annotated(kOfTheExtender, "other")), "none") << "it is not named";
  EXPECT_EQ(read_of(zone_annotated(R"({"v":1,"node":"n1","zones":[3,0,1,1]})")), "0-1,3")
      << "the pod's, without containers";
  EXPECT_EQ(read_of(zone_annotated(R"({"v":1,"node":"n1","zones":[]})")), "none");
  EXPECT_EQ(read_of(zone_annotated(R"({"v":1,"node":"n1","containers":{"main":[65535]}})")), "65535");
  EXPECT_EQ(read_of(zone_annotated(R"({"v":1,"node":"n1","zones":[0],"zones":[2]})")), "2") << "the last counts";
  EXPECT_EQ(read_of(guaranteed("main", 2)), "none");
}

TEST(Zone, TellsWhoseCpusAreOfThePool) {
  const auto is_of_pool = [](const char* rest, const std::string& container = "main") {
    return read_zone(zone_annotated(std::string(R"({"v":1,"node":"n1","zones":[1])") + rest + "}", container),
                     rules_on("n1"))
        ->is_of_pool;
  };
  EXPECT_TRUE(is_of_pool(R"(,"pool":["side","main"])"));
  EXPECT_FALSE(is_of_pool(R"(,"pool":["side"])"));
  EXPECT_FALSE(is_of_pool(""));
  EXPECT_FALSE(is_of_pool(R"(,"pool":{"main":1})")) << "somebody else's";
}

TEST(Zone, OfAnotherNodeOrVersionIsIgnored) {
  EXPECT_EQ(read_of(zone_annotated(kOfTheExtender), rules_on("n2")),
            "annotation topolet.io/zone is ignored: it is for node n1, and this is node n2 (daemon.node-name)");
  EXPECT_EQ(read_of(zone_annotated(R"({"v":2,"where":"anywhere"})")),
            "annotation topolet.io/zone is ignored: it is of version 2, and topolet reads version 1");
  EXPECT_THAT(read_of(zone_annotated(R"({"v":-1})")), HasSubstr("version -1"));
  const std::string far(300000, 'x');
  EXPECT_LT(read_of(zone_annotated(R"({"v":1,"node":")" + far + R"(","zones":[0]})")).size(), 300U);
}

TEST(Zone, IsIgnoredWhereItIsNotPermitted) {
  PlacementRules rules = rules_on("n1");
  rules.annotations = ZoneNames{"cpus"};
  EXPECT_EQ(read_of(zone_annotated("no JSON"), rules),
            "annotation topolet.io/zone is ignored: placement.annotations does not list it");
  rules.annotations = ZoneNames{"cpus", "zone"};
  EXPECT_EQ(read_of(zone_annotated(kOfTheExtender), rules), "1");
}

TEST(Zone, IsHistoryAtTheSecondAttempt) {
  for (const std::string json : {kOfTheExtender, "no JSON"}) {
    Workload again = zone_annotated(json);
    again.key.attempt = 1;
    EXPECT_EQ(read_of(again), "none");
  }
}

TEST(Zone, OfAnotherShapeIsRefused) {
  const std::pair<std::string, std::string> wrong[] = {
      {"", "it is not valid JSON"},
      {"1", "it is not an object"},
      {"[1]", "it is not an object"},
      {R"({"v":1,"node":"n1","zones":[1])", "it is not valid JSON"},
      {R"({"node":"n1","zones":[1]})", "'v', its version, is not a whole number"},
      {R"({"v":"1","node":"n1","zones":[1]})", "'v', its version, is not a whole number"},
      {R"({"v":1.0,"node":"n1","zones":[1]})", "'v', its version, is not a whole number"},
      {R"({"v":1,"zones":[1]})", "'node' is not the name of a node"},
      {R"({"v":1,"node":1,"zones":[1]})", "'node' is not the name of a node"},
      {R"({"v":1,"node":"n1"})", "it has neither 'zones' nor 'containers'"},
      {R"({"v":1,"node":"n1","zones":1})", "'zones' is not a list of node numbers"},
      {R"({"v":1,"node":"n1","zones":["1"]})", "'zones' is not a list of node numbers"},
      {R"({"v":1,"node":"n1","zones":[-1]})", "'zones' is not a list of node numbers"},
      {R"({"v":1,"node":"n1","zones":[1.5]})", "'zones' is not a list of node numbers"},
      {R"({"v":1,"node":"n1","zones":[65536]})", "'zones' is not a list of node numbers"},
      {R"({"v":1,"node":"n1","zones":[99999999999999999999]})", "'zones' is not a list of node numbers"},
      {R"({"v":1,"node":"n1","zones":[1e999]})", "it is not valid JSON"},
      {R"({"v":1,"node":"n1","zones":[null],"containers":{"main":[1]}})", "'zones' is not a list of node numbers"},
      {R"({"v":1,"node":"n1","zones":[1],"containers":[1]})", "'containers' is not an object"},
      {R"({"v":1,"node":"n1","zones":[1],"containers":null})", "'containers' is not an object"},
      {R"({"v":1,"node":"n1","zones":[1],"containers":{"other":1}})",
       "what 'containers' has for 'other' is not a list of node numbers"}};
  for (const auto& [json, why] : wrong) {
    EXPECT_THAT(read_of(zone_annotated(json)),
                AllOf(HasSubstr("annotation topolet.io/zone = '"), HasSubstr("': " + why + "; "),
                      HasSubstr(R"({"v": 1, "node": "NODE", "zones": [1])")))
        << json;
  }
}

TEST(Zone, MayBeNestedDeeply) {
  const std::string deep(200000, '[');
  EXPECT_THAT(read_of(zone_annotated(deep)), HasSubstr("it is not valid JSON"));
  const std::string nested = deep + std::string(200000, ']');
  EXPECT_THAT(read_of(zone_annotated(nested)), HasSubstr("it is not an object"));
  EXPECT_THAT(read_of(zone_annotated(R"({"v":1,"node":"n1","zones":)" + nested + "}")),
              HasSubstr("'zones' is not a list of node numbers"));
  EXPECT_EQ(read_of(zone_annotated(R"({"v":1,"node":"n1","zones":[1],"more":)" + nested + "}")), "1");
}

TEST(Zone, IsNoSetting) {
  const std::map<std::string, std::string> annotations = {
      {"topolet.io/zone", "1"}, {"topolet.io/zone-policy", "single"}, {"topolet.io/zone-strategy", "packed"}};
  Workload workload = guaranteed("main", 2);
  workload.pod_annotations = annotations;
  workload.annotations = annotations;
  const auto settings = read_settings(workload, std::nullopt);
  ASSERT_TRUE(settings.has_value());
  EXPECT_TRUE(settings->values.empty()) << settings->values.begin()->first;
  const auto none_permitted = read_settings(workload, ZoneNames{});
  ASSERT_TRUE(none_permitted.has_value());
  EXPECT_TRUE(none_permitted->not_permitted.empty()) << "the daemon does not read them as settings";
  workload.annotations = {};
  workload.pod_annotations = {{"topolet.io/containers", R"({"main": {"zone": "0", "zone-policy": "any"}})"}};
  EXPECT_TRUE(read_settings(workload, std::nullopt)->values.empty()) << "what users write of containers is no zone";
}

TEST(Zone, IsAWishOfTheWorkload) {
  EXPECT_EQ(zone_of(guaranteed("main", 2)), std::nullopt);
  const Workload wishing = with_zone(guaranteed("main", 2), {0, 2});
  EXPECT_EQ(wishing.settings.at("zone"), "0,2");
  EXPECT_EQ(zone_of(wishing), (NodeSet{0, 2}));
}

/// Takes whatever node the test says.
class NodeChooser : public Policy {
 public:
  explicit NodeChooser(NodeSet nodes) : nodes_(std::move(nodes)) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    std::vector<Verdict> verdicts;
    for (const Candidate& candidate : request.candidates)
      verdicts.push_back({Verdict::Kind::kScore, candidate.nodes == nodes_ ? 100 : 0, "chosen"});
    return verdicts;
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override { return Pick(); }

 private:
  std::string name_ = "chooser";
  NodeSet nodes_;
};

Decision decided_on(const Workload& workload, const NodeSet& nodes) {
  TestNode node("pack:2 numa:1 core:4 pu:1");
  node.votes = {{std::make_shared<NodeChooser>(nodes)}};
  return node.ask(workload);
}

TEST(Zone, ThatIsMissedIsToldWithTheDecision) {
  const Workload wishing = with_zone(guaranteed("main", 2), {1});
  const Decision missed = decided_on(wishing, {0});
  EXPECT_FALSE(missed.denied);
  EXPECT_EQ(missed.reason_code, reason_code::kZoneMissed);
  EXPECT_THAT(missed.reason, HasSubstr("; outside the zone that the scheduler has chosen for it, node 1"));
  const Decision wide = decided_on(wishing, {0, 1});
  EXPECT_EQ(wide.reason_code, reason_code::kZoneMissed) << "partly outside";
  const Decision hit = decided_on(wishing, {1});
  EXPECT_EQ(hit.reason_code, reason_code::kBestScore);
  EXPECT_THAT(hit.reason, Not(HasSubstr("zone")));
  EXPECT_EQ(decided_on(with_zone(guaranteed("main", 2), {0, 1}), {1}).reason_code, reason_code::kBestScore);
  EXPECT_EQ(decided_on(guaranteed("main", 2), {0}).reason_code, reason_code::kBestScore) << "without a zone";
}

TEST(Zone, IsNotMissedByWhoWishesForNoPlace) {
  Workload anywhere = besteffort("main");
  anywhere.settings = {{"cpus", "none"}};
  EXPECT_EQ(decided_on(with_zone(anywhere, {1}), {0}).reason_code, reason_code::kNoOpinion);
}

}  // namespace
}  // namespace topolet::placement
