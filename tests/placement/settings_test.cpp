#include "core/placement/settings.hpp"

#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using testing::besteffort;
using Map = std::map<std::string, std::string>;

Workload annotated(Map pod, Map own = {}) {
  Workload workload = besteffort("main");
  workload.pod_annotations = std::move(pod);
  workload.annotations = std::move(own);
  return workload;
}

std::string refusal(const Workload& workload) {
  const auto settings = read_settings(workload, std::nullopt);
  return settings ? "" : settings.error().message;
}

TEST(Settings, TakeTheContainersWordBeforeThePods) {
  const Workload workload = annotated({{"topolet.io/cpus", "exclusive"},
                                       {"topolet.io/smt", "off"},
                                       {"topolet.io/theirs", "pod"},
                                       {"topolet.io/containers", R"({"main": {"cpus": "shared", "theirs": "named"},
                                                                      "other": {"smt": "on"}})"},
                                       {"other.io/cpus", "x"},
                                       {"topolet.iox", "x"}},
                                      {{"topolet.io/theirs", "own"}});
  const auto settings = read_settings(workload, std::nullopt);
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->values, (Map{{"cpus", "shared"}, {"smt", "off"}, {"theirs", "own"}}));
  EXPECT_TRUE(settings->not_permitted.empty());
}

TEST(Settings, MayBeWrittenOutForOneContainer) {
  const auto settings = read_settings(
      annotated({{"topolet.io/containers", R"({"main": {"topolet.io/smt": "isolate", "cpus": "shared"}})"}}),
      std::nullopt);
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->values, (Map{{"cpus", "shared"}, {"smt", "isolate"}}));
}

TEST(Settings, LeaveOutWhatIsNotPermittedAndSaySo) {
  const Workload workload =
      annotated({{"topolet.io/cpus", "no such thing"}, {"topolet.io/smt", "off"}, {"topolet.io/containers", "no JSON"}},
                {{"topolet.io/cpus", "shared"}});
  const auto settings = read_settings(workload, std::vector<std::string>{"smt"});
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->values, (Map{{"smt", "off"}}));
  EXPECT_EQ(settings->not_permitted, (std::vector<std::string>{"cpus", "containers"}));
  const auto named = read_settings(annotated({{"topolet.io/containers", R"({"main": {"cpus": "shared"}})"}}),
                                   std::vector<std::string>{"containers"});
  ASSERT_TRUE(named.has_value());
  EXPECT_TRUE(named->values.empty()) << "cpus is not permitted there either";
}

KnownAnnotations with_smt() {
  KnownAnnotations known = core_annotations();
  known.add_plugin("smt", std::vector<std::string>{"smt"}, {{"smt", "isolate"}});
  return known;
}

Settings ruled(Workload workload, const std::string& name_space, const PlacementRules& rules = {}) {
  workload.pod_namespace = name_space;
  const auto settings = read_settings(workload, rules, with_smt());
  EXPECT_TRUE(settings.has_value()) << settings.error().message;
  return settings.value();
}

const Map kTakingAll = {
    {"topolet.io/cpus", "exclusive"}, {"topolet.io/smt", "isolate"}, {"topolet.io/isolated", "prefer"}};

TEST(Settings, LeaveOutWhatTakesMoreThanIsRequested) {
  const Settings limited = ruled(annotated(kTakingAll), "web");
  EXPECT_EQ(limited.values, (Map{{"cpus", "exclusive-if-whole"}}));
  EXPECT_EQ(limited.not_taken, (std::vector<TakingAnnotation>{{"isolated", ""}, {"smt", "isolate"}}));
  EXPECT_TRUE(limited.not_permitted.empty());
  const Settings harmless = ruled(annotated({{"topolet.io/cpus", "shared"}, {"topolet.io/smt", "share"}}), "web");
  EXPECT_EQ(harmless.values, (Map{{"cpus", "shared"}, {"smt", "share"}}));
  EXPECT_TRUE(harmless.not_taken.empty());
}

TEST(Settings, AskForIsolatedCpusAsFarAsTheNodeGivesThemToOthersToo) {
  const auto left = [](const char* isolated, IsolatedRule rule) {
    PlacementRules rules;
    rules.isolated = rule;
    const Settings settings = ruled(annotated({{"topolet.io/isolated", isolated}}), "web", rules);
    EXPECT_EQ(settings.values.size() + settings.not_taken.size(), 1U);
    return settings.values.contains("isolated");
  };
  EXPECT_FALSE(left("require", IsolatedRule::kAnnotated));
  EXPECT_FALSE(left("prefer", IsolatedRule::kAnnotated));
  EXPECT_TRUE(left("require", IsolatedRule::kPrefer));
  EXPECT_TRUE(left("prefer", IsolatedRule::kPrefer));
  EXPECT_TRUE(left("require", IsolatedRule::kAlways));
  EXPECT_FALSE(left("prefer", IsolatedRule::kAlways)) << "CPUs of the pool are given to nobody there";
}

TEST(Settings, LeaveOutWhatTheContainerSaysLastAndNotWhatItOverrode) {
  const Workload workload =
      annotated({{"topolet.io/smt", "share"}, {"topolet.io/containers", R"({"main": {"topolet.io/smt": "isolate"}})"}});
  EXPECT_EQ(ruled(workload, "web").values, Map{}) << "it is as if nothing were said";
}

TEST(Settings, CountWholeInTheNamespacesThatMayTakeMore) {
  const Map all = {{"cpus", "exclusive"}, {"smt", "isolate"}, {"isolated", "prefer"}};
  PlacementRules rules;
  rules.exclusive_namespaces = {"db", "trading-*"};
  for (const char* listed : {"db", "trading-", "trading-eu", "kube-system"}) {
    EXPECT_EQ(ruled(annotated(kTakingAll), listed, rules).values, all) << listed;
  }
  for (const char* other : {"d", "db2", "trading", "my-trading-eu", ""}) {
    EXPECT_EQ(ruled(annotated(kTakingAll), other, rules).not_taken.size(), 2U) << other;
  }
  rules.reserved_namespaces = {"system"};
  EXPECT_EQ(ruled(annotated(kTakingAll), "system", rules).values, all);
  EXPECT_EQ(ruled(annotated(kTakingAll), "kube-system", rules).not_taken.size(), 2U);
}

TEST(Settings, KeepOnlyWhatSomebodyReads) {
  const Workload workload = annotated({{"topolet.io/smt", "share"}, {"topolet.io/team", "hunter2"}});
  EXPECT_EQ(ruled(workload, "web").values, (Map{{"smt", "share"}}));
  KnownAnnotations known = with_smt();
  known.add_plugin("apart", std::nullopt);
  const auto settings = read_settings(workload, PlacementRules(), known);
  EXPECT_EQ(settings->values, (Map{{"smt", "share"}, {"team", "hunter2"}}));
}

TEST(Settings, CannotBeWrittenAsWhatTheyBecome) {
  EXPECT_NE(refusal(annotated({{"topolet.io/cpus", "exclusive-if-whole"}})), "");
}

TEST(Settings, RefuseABadValueByName) {
  EXPECT_EQ(refusal(annotated({{"topolet.io/cpus", "exclusiv"}})),
            "annotation topolet.io/cpus = 'exclusiv': it must be one of 'exclusive', 'shared', 'none'");
  EXPECT_EQ(refusal(annotated({}, {{"topolet.io/isolated", "yes"}})),
            "annotation topolet.io/isolated = 'yes': it must be one of 'prefer', 'require'");
  EXPECT_EQ(refusal(annotated({{"topolet.io/containers", R"({"main": {"cpus": "all"}})"}})),
            "annotation topolet.io/cpus = 'all': it must be one of 'exclusive', 'shared', 'none'");
  EXPECT_EQ(refusal(annotated({{"topolet.io/containers", R"({"other": {"cpus": "all"}})"}})), "");
}

TEST(Settings, RefuseAContainersAnnotationOfAnotherShape) {
  for (const std::string json : {"", "shared", "[]", "3", R"({"main": "shared"})", R"({"main": {"cpus": true}})",
                                 R"({"other": {"cpus": 1}})", R"({"main": {"cpus": "shared"})", "{\"main\xff\": {}}"}) {
    const std::string said = refusal(annotated({{"topolet.io/containers", json}}));
    EXPECT_NE(said.find("annotation topolet.io/containers = '"), std::string::npos) << json << ": " << said;
    EXPECT_NE(said.find(R"({"CONTAINER": {"cpus": "shared"}})"), std::string::npos) << said;
  }
}

TEST(Settings, ShowAHugeValueInPart) {
  const std::string said = refusal(annotated({{"topolet.io/cpus", std::string(100000, 'x') + "\n"}}));
  EXPECT_LT(said.size(), 300U);
  EXPECT_EQ(said.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace topolet::placement
