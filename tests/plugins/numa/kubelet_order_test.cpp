// policy = none: the CPUs that the kubelet would take.
#include "plugins/numa/kubelet_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace topolet::numa {
namespace {

using sdk::Set;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;

/// From the kernel's list format.
Set cpus(std::string_view list) {
  Set set;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), first);
    last = first;
    if (rest != part.data() + part.size()) std::from_chars(rest + 1, part.data() + part.size(), last);
    for (; first <= last; ++first) set.insert(first);
  }
  return set;
}

std::string taken(const std::string& synthetic, const char* occupied, std::size_t wanted,
                  const KubeletOrder& order = {}) {
  const Machine machine(synthetic);
  const Set usable = machine.online() - cpus(occupied);
  return set_of(kubelet_order(Layout(machine.view()), usable.view(), wanted, order)).to_string();
}

constexpr KubeletOrder kAcrossNuma{.distribute_cpus_across_numa = true};
constexpr KubeletOrder kFullAcrossNuma{.full_pcpus_only = true, .distribute_cpus_across_numa = true};
constexpr KubeletOrder kAcrossCores{.distribute_cpus_across_cores = true};
constexpr KubeletOrder kByCache{.prefer_align_cpus_by_uncorecache = true};

TEST(KubeletOrder, TakesNothingOfWhatIsNotEnough) {
  EXPECT_EQ(taken("numa:1 core:2 pu:1", "0", 2), "");
  EXPECT_EQ(taken("numa:1 core:2 pu:1", "", 0), "");
}

TEST(KubeletOrder, TakesThePackageBeforeTheNodeWhereItIsTheLarger) {
  // 8 CPUs: package 1 is free; two nodes of package 0 and 2 would be too, and are fuller.
  EXPECT_EQ(taken("pack:2 numa:2 core:4 pu:1", "0", 8), "8-15");
  EXPECT_EQ(taken("pack:2 numa:2 core:4 pu:1", "0,8", 8), "4-7,12-15");
}

TEST(KubeletOrder, TakesTheNodeBeforeThePackageWhereItIsTheLarger) {
  EXPECT_EQ(taken("group:2 [numa] pack:2 core:2 pu:1", "0", 4), "4-7");
  EXPECT_EQ(taken("group:2 [numa] pack:2 core:2 pu:1", "0,4", 4), "2-3,6-7");
}

TEST(KubeletOrder, TakesTheFullestFirstAndTheLowestOfEquals) {
  EXPECT_EQ(taken("pack:2 numa:1 core:4 pu:2", "8-11", 2), "12-13");
  EXPECT_EQ(taken("pack:2 numa:1 core:4 pu:2", "", 2), "0-1");
  EXPECT_EQ(taken("pack:2 numa:1 core:4 pu:2", "0,4-5,9", 1), "1") << "package 0 has fewer free CPUs";
}

TEST(KubeletOrder, FillsPartlyUsedCoresWithSingleThreads) {
  EXPECT_EQ(taken("numa:1 core:4 pu:2", "5", 3), "0-1,4");
  EXPECT_EQ(taken("numa:1 core:4 pu:4", "0,4-5", 6), "6-11");
}

TEST(KubeletOrder, TakesCpusAcrossCores) {
  EXPECT_EQ(taken("pack:1 numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)", "", 3, kAcrossCores), "0-2");
  EXPECT_EQ(taken("pack:2 numa:1 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)", "0", 2, kAcrossCores), "1,4");
}

TEST(KubeletOrder, TakesCpusAcrossCoresWhoseSiblingsAreNumberedSideBySide) {
  EXPECT_EQ(taken("numa:1 core:4 pu:2", "", 4, kAcrossCores), "0,2,4,6");
  EXPECT_EQ(taken("numa:1 core:4 pu:2", "", 5, kAcrossCores), "0-2,4,6") << "then a second one of the lowest";
  EXPECT_EQ(taken("numa:1 core:4 pu:2", "2,6", 4, kAcrossCores), "0,3-4,7") << "also beside CPUs in use";
  EXPECT_EQ(taken("numa:1 core:2 pu:4", "1", 5, kAcrossCores), "0,2-5") << "the second of each before the third";
  EXPECT_EQ(taken("pack:2 numa:1 core:2 pu:2", "0", 3, kAcrossCores), "1-3") << "all of the fuller package first";
  EXPECT_EQ(taken("pack:2 numa:1 core:2 pu:2", "0,4", 5, kAcrossCores), "1-3,5-6");
}

TEST(KubeletOrder, TakesCpusAcrossCoresOfDifferentSizes) {
  const Machine machine("numa:1 core:4 pu:2");
  topolet_topology view = machine.view();
  std::vector<topolet_pu> pus(view.pus, view.pus + view.pu_count);
  for (std::size_t i = 4; i < 8; ++i) pus[i].core = TOPOLET_NONE;  // four cores of one thread
  for (std::size_t i = 0; i < 8; ++i) pus[i].os_index = static_cast<std::uint32_t>(10 + 3 * i);
  view.pus = pus.data();
  const Set usable = set_of({10, 13, 16, 19, 25, 28});
  EXPECT_EQ(set_of(kubelet_order(Layout(view), usable.view(), 4, kAcrossCores)).to_string(), "10,16,25,28");
  EXPECT_EQ(set_of(kubelet_order(Layout(view), usable.view(), 5, kAcrossCores)).to_string(), "10,13,16,25,28");
}

TEST(KubeletOrder, AlignsByCache) {
  const char* const machine = "numa:1 l3:2 core:4 pu:2";
  EXPECT_EQ(taken(machine, "0-1", 8, kByCache), "8-15") << "a whole one";
  EXPECT_EQ(taken(machine, "0-1", 4, kByCache), "2-5") << "part of the fuller";
  EXPECT_EQ(taken(machine, "0-5", 4, kByCache), "8-11") << "the fuller has too few";
  EXPECT_EQ(taken(machine, "", 5, kByCache), "0-4");
  EXPECT_EQ(taken(machine, "0,2,4,6,8,10,12,14", 5, kByCache), "1,3,5,7,9") << "neither has, and no core is whole";
}

TEST(KubeletOrder, WithoutCachesCountsTheMachineAsOne) {
  EXPECT_EQ(taken("pack:2 numa:1 core:3 pu:2(indexes=0,6,2,8,4,10,1,7,3,9,5,11)", "0,6", 1, kByCache), "1");
}

TEST(KubeletOrder, DistributesEvenlyOnlyIfOneNodeIsNotEnough) {
  const char* const machine = "pack:2 numa:1 core:4 pu:2";
  EXPECT_EQ(taken(machine, "", 6, kAcrossNuma), "0-5");
  EXPECT_EQ(taken(machine, "", 10, kAcrossNuma), "0-4,8-12");
  EXPECT_EQ(taken(machine, "0-3", 10, kAcrossNuma), "4-5,8-15") << "one node has no five, so they are packed";
}

TEST(KubeletOrder, DistributesInWholeCores) {
  EXPECT_EQ(taken("pack:2 numa:1 core:4 pu:2", "", 10, kFullAcrossNuma), "0-5,8-11");
  EXPECT_EQ(taken("pack:2 numa:1 core:4 pu:2", "", 9, kFullAcrossNuma), "0-8") << "no multiple of a core: packed";
}

TEST(KubeletOrder, GivesTheRemainderWhereItKeepsTheBalance) {
  EXPECT_EQ(taken("pack:3 numa:1 core:8 pu:1", "0-1,8", 17, kAcrossNuma), "2-6,9-14,16-21")
      << "five each, and one more of the two emptiest";
}

TEST(KubeletOrder, AboveEightNodesDistributesOverTheEmptiest) {
  EXPECT_EQ(taken("pack:3 numa:4 core:4 pu:1", "0-7", 8, kAcrossNuma), "8-15");
  EXPECT_EQ(taken("pack:3 numa:4 core:4 pu:1", "8,12,16,20", 9, kAcrossNuma), "0-2,4-6,24-26");
  EXPECT_EQ(set_of(kubelet_order(Layout(Machine("pack:8 numa:8 core:16 pu:2").view()),
                                 Machine("pack:8 numa:8 core:16 pu:2").view().online, 640, kAcrossNuma))
                .size(),
            640U);
}

TEST(KubeletOrder, TakesCpusOutsideAnyNodeLikeThoseOfOneMoreNode) {
  const Machine machine("numa:2 core:2 pu:1");
  topolet_topology view = machine.view();
  std::vector<topolet_pu> pus(view.pus, view.pus + view.pu_count);
  pus[3].node = TOPOLET_NONE;
  view.pus = pus.data();
  EXPECT_EQ(set_of(kubelet_order(Layout(view), view.online, 2, {})).to_string(), "2-3") << "two whole ones";
  EXPECT_EQ(set_of(kubelet_order(Layout(view), view.online, 4, {})).to_string(), "0-3");
}

TEST(KubeletOrder, NeverTakesABusyThreadWhereCoresDiffer) {
  const Machine machine("numa:1 core:4 pu:2");
  topolet_topology view = machine.view();
  std::vector<topolet_pu> pus(view.pus, view.pus + view.pu_count);
  for (std::size_t i = 4; i < 8; ++i) pus[i].core = TOPOLET_NONE;  // four cores of one thread
  view.pus = pus.data();
  const Set usable = set_of({1, 2, 3, 4, 5});
  for (std::size_t wanted = 1; wanted <= 5; ++wanted) {
    const Set took = set_of(kubelet_order(Layout(view), usable.view(), wanted, {}));
    EXPECT_EQ(took.size(), wanted);
    EXPECT_TRUE((took - usable).empty());
  }
}

/// One line of the vectors' file; they hold strings, numbers, booleans and one flat object only.
struct Vector {
  std::string id, topology, occupied, expect;
  std::uint32_t wanted = 0;
  bool denied = false;
  std::vector<std::pair<std::string, std::string>> options = {{"policy", "none"}};
};

Vector read_vector(const std::string& line) {
  const auto text = [&line](const std::string& key) {
    std::smatch match;
    return std::regex_search(line, match, std::regex('"' + key + "\": \"([^\"]*)\"")) ? match[1].str() : "";
  };
  Vector vector{text("id"), text("topology"), text("occupied"), text("expect")};
  std::smatch match;
  if (std::regex_search(line, match, std::regex("\"cpus\": ([0-9]+)"))) {
    vector.wanted = static_cast<std::uint32_t>(std::stoul(match[1].str()));
  }
  vector.denied = line.find("\"expect\": null") != std::string::npos;
  const std::regex flag("\"([a-z-]+)\": true");
  for (std::sregex_iterator at(line.begin(), line.end(), flag), end; at != end; ++at) {
    vector.options.emplace_back((*at)[1].str(), "true");
  }
  return vector;
}

void expect_as_kubelet(const Vector& vector) {
  const Machine machine(vector.topology);
  Ledger ledger(machine);
  ledger.place_exclusive({.pod_uid = "other"}, cpus(vector.occupied));
  Request request(machine, ledger, {}, vector.wanted);
  std::size_t whole = 0;
  for (std::size_t i = 0; i < request.view().candidate_count; ++i) {
    if (sdk::size_of(request.view().candidates[i].cpus) == machine.online().size()) whole = i;
  }
  FakeHost host;
  Plugin plugin(topolet_plugin_v1, host, vector.options);
  const auto verdicts = plugin.score(request);
  const std::vector<std::uint32_t> order = plugin.order(request, whole).order;
  const bool rejected = verdicts[whole].kind == TOPOLET_VERDICT_REJECT;
  if (vector.denied) {
    EXPECT_TRUE(rejected || order.empty());
    return;
  }
  EXPECT_FALSE(rejected) << verdicts[whole].reason;
  ASSERT_GE(order.size(), vector.wanted);
  EXPECT_EQ(set_of({order.begin(), order.begin() + vector.wanted}).to_string(), cpus(vector.expect).to_string());
}

TEST(KubeletOrder, GivesWhatTheKubeletsOwnTestsExpect) {
  constexpr char kVectors[] = TOPOLET_TEST_DATA "/vectors/kubelet-cpu-assignment.jsonl";
  std::ifstream file(kVectors);
  ASSERT_TRUE(file) << kVectors;
  std::size_t seen = 0;
  for (std::string line; std::getline(file, line);) {
    const Vector vector = read_vector(line);
    if (vector.wanted == 0) continue;
    SCOPED_TRACE(vector.id);
    expect_as_kubelet(vector);
    ++seen;
  }
  EXPECT_GT(seen, 0U);
}

}  // namespace
}  // namespace topolet::numa
