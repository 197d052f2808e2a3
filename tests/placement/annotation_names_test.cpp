#include "core/placement/annotation_names.hpp"

#include <gmock/gmock.h>

#include <iterator>

#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Map = std::map<std::string, std::string>;
using Strings = std::vector<std::string>;

constexpr const char* kSecret = "hunter2";

KnownAnnotations with_plugins() {
  KnownAnnotations known = core_annotations();
  known.add_plugin("numa", Strings{"numa-policy"});
  known.add_plugin("smt", Strings{"smt", "cpu-profile"});
  return known;
}

struct Told {
  Map pod = {};
  Map own = {};
  std::set<std::string> pod_containers = {};
  std::optional<Strings> permitted = {};
  KnownAnnotations known = with_plugins();
  std::string container = "main";

  Strings lines() const {
    Workload workload = testing::besteffort(container);
    workload.pod_annotations = SharedStringMap::Map(pod);
    workload.annotations = SharedStringMap::Map(own);
    return describe_misspelt_names(workload, pod_containers, permitted, known);
  }
};

Strings of_containers(const std::string& json, const std::string& container = "main",
                      std::set<std::string> pod_containers = {}) {
  return Told{
      .pod = {{"topolet.io/containers", json}}, .pod_containers = std::move(pod_containers), .container = container}
      .lines();
}

TEST(AnnotationNames, ThatSomebodyReadsAreNotTold) {
  EXPECT_THAT((Told{.pod = {{"topolet.io/cpus", "exclusive"},
                            {"topolet.io/isolated", "prefer"},
                            {"topolet.io/numa-policy", "none"},
                            {"topolet.io/containers", R"({"main": {"smt": "share", "topolet.io/cpu-profile": "x"}})"}},
                    .own = {{"topolet.io/smt", "isolate"}}}
                   .lines()),
              IsEmpty());
}

TEST(AnnotationNames, OfOthersAreNeverTold) {
  EXPECT_THAT((Told{.pod = {{"example.com/cpu", ""},
                            {"topolet.iox", ""},
                            {"cpu", ""},
                            {"cpus", ""},
                            {"app-cpus", ""},
                            {"topology.kubernetes.io/zone", ""},
                            {"koordinator.sh/cpus", ""},
                            {"topolet.example.com/cpus", ""},
                            {"topolet.com/unlike-anything", ""},
                            {std::string(100, 'x') + "/cpus", ""}},
                    .own = {{"io.kubernetes.container.hash", ""}}}
                   .lines()),
              IsEmpty());
}

TEST(AnnotationNames, WithAKeyNearTopoletsAreToldWithTheNearest) {
  const auto meant = [](const std::string& key) {
    const Strings lines = Told{.pod = {{key, kSecret}}}.lines();
    return lines.size() == 1 ? lines.front() : std::to_string(lines.size()) + " lines";
  };
  EXPECT_EQ(meant("topolet.com/cpus"),
            "annotation topolet.com/cpus is none of topolet's; did you mean topolet.io/cpus?");
  for (const char* key : {"topolet.io.cpus", "topolet.io-cpus", "topolet.io_cpus", "topo1et.io/cpus", "toplet.io/cpus",
                          "topolet/cpus", "Topolet.IO/cpus", "topolet.k8s.io/cpus", "topolet.io.cpu",
                          "a.topolet.io/cpu", "topolet.io:cpus", "topolet-cpus"}) {
    EXPECT_THAT(meant(key), ::testing::EndsWith("is none of topolet's; did you mean topolet.io/cpus?")) << key;
  }
  EXPECT_THAT(meant("topolet.io.numa-policy"), HasSubstr("did you mean topolet.io/numa-policy?"));
}

TEST(AnnotationNames, WrittenAsLabelsAreTold) {
  Workload workload = testing::besteffort("main");
  workload.pod_labels = {{"topolet.io/cpus", kSecret}, {"topolet.io/team", kSecret}, {"app", "web"}};
  EXPECT_THAT(describe_misspelt_names(workload, {}, std::nullopt, with_plugins()),
              ElementsAre("label topolet.io/cpus has no effect: write it as an annotation"));
}

TEST(AnnotationNames, ThatNobodyReadsAreKeptWithoutTheirValues) {
  const auto kept = [](const Map& annotations, const KnownAnnotations& known) {
    return Map(without_unread_values(SharedStringMap(annotations), known));
  };
  const Map annotations = {{"topolet.io/smt", "share"},
                           {"topolet.io/team", kSecret},
                           {"topolet.io/zone", "1"},
                           {"example.com/team", "x"},
                           {"topolet.io/containers", R"({"main": {"cpus": "shared", "topolet.io/team": "hunter2"}})"}};
  Map expected = annotations;
  expected["topolet.io/team"] = "";
  expected["topolet.io/containers"] = R"({"main":{"cpus":"shared","topolet.io/team":""}})";
  EXPECT_EQ(kept(annotations, with_plugins()), expected);
  KnownAnnotations known = with_plugins();
  known.add_plugin("apart", std::nullopt);
  EXPECT_EQ(kept(annotations, known), annotations) << "it may read it";
  for (const char* odd : {"", "[]", "hunter2", R"({"main": "hunter2"})"}) {
    EXPECT_EQ(kept({{"topolet.io/containers", odd}}, with_plugins()).at("topolet.io/containers"), odd);
  }
}

TEST(AnnotationNames, ThatNobodyReadsAreToldWithTheNearest) {
  EXPECT_THAT((Told{.pod = {{"topolet.io/cpu", kSecret}, {"topolet.io/mumapolicy", kSecret}},
                    .own = {{"topolet.io/SMT", kSecret}, {"topolet.io/cpu", kSecret}}}
                   .lines()),
              ElementsAre("unknown annotation topolet.io/cpu; did you mean topolet.io/cpus?",
                          "unknown annotation topolet.io/mumapolicy; did you mean topolet.io/numa-policy?",
                          "unknown annotation topolet.io/SMT; did you mean topolet.io/smt?"));
  EXPECT_THAT((Told{.pod = {{"topolet.io/team", kSecret}}}.lines()),
              ElementsAre("unknown annotation topolet.io/team: neither topolet nor an enabled plugin reads it"));
}

TEST(AnnotationNames, OfAPluginThatIsNotEnabledAreUnknown) {
  EXPECT_THAT((Told{.pod = {{"topolet.io/smt", "isolate"}}, .known = core_annotations()}.lines()),
              ElementsAre("unknown annotation topolet.io/smt: neither topolet nor an enabled plugin reads it"));
}

TEST(AnnotationNames, AreLessCertainWhileAPluginDoesNotSayWhatItReads) {
  KnownAnnotations known = with_plugins();
  known.add_plugin("apart", std::nullopt);
  known.add_plugin("rack", std::nullopt);
  EXPECT_THAT((Told{.pod = {{"topolet.io/cpu", ""}, {"topolet.io/team", ""}}, .known = known}.lines()),
              ElementsAre("unknown annotation topolet.io/cpu; did you mean topolet.io/cpus? (plugins that do not say "
                          "what they read: apart, rack)",
                          "unknown annotation topolet.io/team: neither topolet nor an enabled plugin is known to read "
                          "it (plugins that do not say what they read: apart, rack)"));
  EXPECT_THAT((Told{.pod = {{"topolet.io/team", ""}}, .permitted = Strings{"team"}, .known = known}.lines()), IsEmpty())
      << "the operator has listed it";
  EXPECT_THAT((Told{.pod = {{"topolet.io/team", ""}}, .permitted = Strings{"team"}}.lines()), SizeIs(1));
}

TEST(AnnotationNames, InsideTheContainersAnnotationAreToldOfItsContainer) {
  const std::string json = R"({"main": {"cpsu": "hunter2", "topolet.io/smtt": "hunter2", "containers": "hunter2"},
                               "other": {"isolatd": "hunter2"}})";
  EXPECT_THAT(of_containers(json),
              ElementsAre("unknown annotation containers in topolet.io/containers for container main: neither topolet "
                          "nor an enabled plugin reads it",
                          "unknown annotation cpsu in topolet.io/containers for container main; did you mean cpus?",
                          "unknown annotation smtt in topolet.io/containers for container main; did you mean smt?"));
  EXPECT_THAT(of_containers(json, "other"),
              ElementsAre("unknown annotation isolatd in topolet.io/containers for container other; did you mean "
                          "isolated?"));
}

TEST(AnnotationNames, OfAContainerNearThisOneAreTold) {
  EXPECT_THAT(of_containers(R"({"mian": {"cpus": "hunter2"}})"),
              ElementsAre("annotation topolet.io/containers names container 'mian', which the pod does not have so "
                          "far; did you mean main?"));
  EXPECT_THAT(of_containers(R"({"Main": {}})"), SizeIs(1));
}

TEST(AnnotationNames, OfContainersThatMayComeAreNotTold) {
  EXPECT_THAT(of_containers(R"({"logger": {"cpus": "shared"}})"), IsEmpty()) << "it is not near";
  EXPECT_THAT(of_containers(R"({"mian": {}, "main": {}})"), IsEmpty()) << "both are meant";
  EXPECT_THAT(of_containers(R"({"mian": {}})", "main", {"mian"}), IsEmpty()) << "there is one";
  EXPECT_THAT(of_containers(R"({"worker-2": {}})", "worker-1"), IsEmpty());
  EXPECT_THAT(of_containers(R"({"worker2": {}})", "worker"), IsEmpty());
  EXPECT_THAT(of_containers(R"({"shard-b": {}})", "shard-a"), IsEmpty());
  EXPECT_THAT(of_containers(R"({"a-shard": {}})", "b-shard"), IsEmpty());
  EXPECT_THAT(of_containers(R"({"shard-a-x": {}})", "shard-b-x"), IsEmpty());
  EXPECT_THAT(of_containers(R"({"worekr-1": {}})", "worker-1"), SizeIs(1));
}

TEST(AnnotationNames, AreNotLookedForInAContainersAnnotationThatDoesNotCount) {
  const Map pod = {{"topolet.io/containers", R"({"mian": {}})"}};
  EXPECT_THAT((Told{.pod = pod, .permitted = Strings{"cpus"}}.lines()), IsEmpty());
  EXPECT_THAT((Told{.pod = pod, .permitted = Strings{"containers"}}.lines()), SizeIs(1));
  for (const char* odd : {"", "[]", "3", R"({"main": 3})", R"({"main")", R"("main")", "null"})
    EXPECT_THAT(of_containers(odd), IsEmpty()) << odd;
}

TEST(AnnotationNames, SayWhereTheContainersAnnotationBelongs) {
  EXPECT_THAT((Told{.own = {{"topolet.io/containers", "{}"}}}.lines()),
              ElementsAre("annotation topolet.io/containers has no effect on a container: write it on the pod"));
}

TEST(AnnotationNames, AreFewAndPrintableWhateverThePodSays) {
  Map pod;
  for (int i = 0; i < 1000; ++i) pod["topolet.io/zz" + std::to_string(i) + std::string(100'000, 'y')] = kSecret;
  pod["topolet.io/a\n\x1b"] = kSecret;
  pod["topolet.io/"] = kSecret;
  const Strings lines = Told{.pod = pod}.lines();
  ASSERT_THAT(lines, SizeIs(9));
  EXPECT_EQ(lines.back(), "and 994 more such names");
  while (pod.size() > 9) pod.erase(std::prev(pod.end()));
  EXPECT_EQ(Told{.pod = pod}.lines().back(), "and 1 more such name");
  EXPECT_THAT(lines[1], HasSubstr("topolet.io/a??"));
  for (const std::string& line : lines) {
    EXPECT_LT(line.size(), 300U);
    EXPECT_THAT(line, Not(HasSubstr(kSecret)));
  }
}

}  // namespace
}  // namespace topolet::placement
