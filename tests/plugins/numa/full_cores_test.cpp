// full-pcpus-only where cores are not alike, and where nodes have parts of cores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "plugins/numa/policy.hpp"
#include "plugins/numa/whole_cores.hpp"
#include "tests/plugins/numa/machine.hpp"

namespace topolet::numa {
namespace {

using sdk::Set;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PolicyOptions full(Alignment alignment = Alignment::kBestEffort) {
  PolicyOptions options;
  options.policy = alignment;
  options.order.full_pcpus_only = true;
  return options;
}

/// Node 0 with two cores of two threads, CPUs 0-3; CPUs 4-7, cores of one thread, on the node `slow`.
Machine hybrid(std::uint32_t slow = 0) {
  Machine machine({.cores = 2});
  if (slow > 0) machine.node_indices.push_back(slow);
  for (std::uint32_t cpu = 4; cpu < 8; ++cpu) machine.add_core(cpu, slow, slow);
  return machine;
}

const std::vector<Set> kKinds = {set_of({4, 5, 6, 7}), set_of({0, 1, 2, 3})};

std::string first(const CpuOrder& order, std::size_t count) {
  return set_of(
             {order.cpus.begin(), order.cpus.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.cpus.size()))})
      .to_string();
}

/// Returns the CPUs that are taken on one node that has all CPUs.
std::string taken(std::uint32_t wanted, const Set& others = {}, const PolicyOptions& options = full()) {
  Request request(hybrid(), wanted, others);
  request.kinds(kKinds).candidate({0});
  const CpuOrder order = Policy(options).pick(request.pick());
  const std::string cpus = first(order, wanted);
  if (!order.narrow.empty()) {
    EXPECT_TRUE((set_of(order.cpus) & order.narrow).size() >= wanted) << cpus << " of " << order.narrow.to_string();
  }
  return cpus;
}

TEST(WholeCores, CountsEachCoreByItsOwnThreads) {
  Request request(hybrid(), 1);
  const Set free = set_of({0, 2, 3, 4, 5});
  const WholeCores cores(*request.view().topology, free.view());
  EXPECT_TRUE(cores.sizes_differ());
  EXPECT_EQ(cores.cpus().to_string(), "2-5");
  EXPECT_EQ(cores.most_threads(), 2U);
  for (const std::size_t wanted : {1U, 2U, 3U, 4U}) EXPECT_TRUE(cores.add_up_to(wanted, free.view())) << wanted;
  EXPECT_FALSE(cores.add_up_to(5, free.view()));
  EXPECT_FALSE(cores.add_up_to(UINT32_MAX, free.view()));
  EXPECT_FALSE(cores.add_up_to(1, set_of({0, 1, 2, 3}).view()));
}

TEST(NumaFullCores, TakesWholeCoresOfTheFastestKindThatAddsUpToTheRequest) {
  EXPECT_EQ(taken(1), "4");
  EXPECT_EQ(taken(2), "0-1");
  EXPECT_EQ(taken(3), "4-6");
  EXPECT_EQ(taken(4), "0-3");
  EXPECT_EQ(taken(2, set_of({0, 2})), "4-5") << "1 and 3 are parts of cores";
}

TEST(NumaFullCores, TakesSeveralKindsIfNoneIsEnough) {
  EXPECT_EQ(taken(5), "0-4");
  EXPECT_EQ(taken(3, set_of({4, 5, 6})), "0-1,7");
  EXPECT_EQ(taken(5, set_of({1})), "2-6");
}

TEST(NumaFullCores, TakesWholeCoresUnderTheKubeletsOrderToo) {
  for (const std::uint32_t wanted : {1U, 3U}) {
    EXPECT_EQ(taken(wanted, {}, full(Alignment::kNone)), taken(wanted));
    PolicyOptions spread = full();
    spread.order.distribute_cpus_across_numa = true;
    EXPECT_EQ(taken(wanted, {}, spread), taken(wanted));
  }
}

TEST(NumaFullCores, LeavesTheOddSiblingToThePluginThatRoundsUp) {
  PolicyOptions rounding = full();
  rounding.rounds_up = true;
  EXPECT_EQ(taken(1, {}, rounding), "0");
}

TEST(NumaFullCores, RejectsNodesWhoseWholeCoresDoNotAddUpToTheRequestWhileOthersDo) {
  Request request(hybrid(1), 1);
  request.kinds(kKinds).candidate({0}).candidate({1}).candidate({0, 1});
  const auto verdicts = Policy(full()).score(request.view());
  EXPECT_EQ(verdicts[0].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdicts[0].reason, "node 0 has no free whole cores that add up to 1 CPU (full-pcpus-only)");
  EXPECT_EQ(verdicts[1].score, 100);
  EXPECT_EQ(verdicts[2].kind, TOPOLET_VERDICT_SCORE);
}

TEST(NumaFullCores, RejectsThemUnderPolicyNoneAndHasNoOpinionOnOthers) {
  Request request(hybrid(1), 1);
  request.candidate({0}).candidate({1}).candidate({0, 1});
  const auto verdicts = Policy(full(Alignment::kNone)).score(request.view());
  EXPECT_EQ(verdicts[0].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdicts[1].kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdicts[2].kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST(NumaFullCores, DeniesInTheKubeletsWordsIfNoWholeCoresAddUpToTheRequest) {
  Request one(hybrid(1), 1, set_of({4, 5, 6, 7}));
  one.candidate({0}).candidate({1}).candidate({0, 1});
  for (const Alignment alignment : {Alignment::kNone, Alignment::kBestEffort}) {
    for (const Verdict& verdict : Policy(full(alignment)).score(one.view())) {
      EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_REJECT);
      EXPECT_EQ(verdict.reason,
                "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2 (full-pcpus-only)");
    }
  }
  Request four(hybrid(), 4, set_of({0, 5, 6, 7}));
  four.candidate({0});
  EXPECT_THAT(Policy(full()).score(four.view())[0].reason,
              HasSubstr("not enough free physical CPUs: available physical CPUs = 3, requested CPUs = 4"));
}

TEST(NumaFullCores, RestrictedAdmitsTheFewestNodesWhoseWholeCoresCouldAddUpToTheRequest) {
  Machine machine({.cores = 2});
  machine.node_indices.push_back(1);
  machine.add_core(4, 1, 1);
  Request request(machine, 3);
  request.candidate({0}).candidate({1}).candidate({0, 1});
  const auto verdicts = Policy(full(Alignment::kRestricted)).score(request.view());
  EXPECT_EQ(verdicts[0].kind, TOPOLET_VERDICT_REJECT) << "four CPUs, but no three of them are whole cores";
  EXPECT_EQ(verdicts[2].score, 100) << verdicts[2].reason;
}

TEST(NumaFullCores, RejectsPartsOfCoresThatOtherPoliciesChose) {
  Request request(hybrid(), 3);
  request.candidate({0});
  const auto rejection = [&](const Set& chosen) {
    topolet_pick_request pick = request.pick();
    pick.stage = TOPOLET_PICK_REVIEW;
    pick.chosen = chosen.view();
    return Policy(full()).pick(pick).rejection;
  };
  EXPECT_EQ(rejection(set_of({0, 4, 5})),
            "CPU 0 is only part of a core, and cores must be taken whole (full-pcpus-only)");
  EXPECT_EQ(rejection(set_of({1, 2, 4})),
            "CPUs 1-2 are only part of a core, and cores must be taken whole (full-pcpus-only)");
  EXPECT_THAT(rejection(set_of({2, 3, 4})), IsEmpty());
}

TEST(NumaFullCores, TakesASlowerKindWhereTheFasterHasPartsOfCoresOnly) {
  Request request(Machine({.cores = 4}), 2, set_of({0, 2}));
  request.kinds({set_of({4, 5, 6, 7}), set_of({0, 1, 2, 3})}).candidate({0});
  const CpuOrder order = Policy(full()).pick(request.pick());
  EXPECT_EQ(first(order, 2), "4-5");
  EXPECT_EQ(order.narrow.to_string(), "4-7");
}

TEST(NumaFullCores, PrefersANodeWithWholeCoresButTakesPartsOfThemAsTheKubeletWould) {
  const sdk::testing::Machine machine("pack:2 numa:1 core:2 pu:2");
  sdk::testing::Ledger ledger(machine);
  sdk::testing::FakeHost host;
  sdk::testing::Plugin plugin(topolet_plugin_v1, host, {{"full-pcpus-only", "true"}});
  ledger.place_exclusive({.pod_uid = "other"}, set_of({0, 2}));
  const auto some = plugin.score(sdk::testing::Request(machine, ledger, {}, 2));
  EXPECT_EQ(some[0].kind, TOPOLET_VERDICT_SCORE);
  EXPECT_LE(some[0].score, -60);
  EXPECT_THAT(some[0].reason, HasSubstr("too few of them on free whole cores (full-pcpus-only)"));
  EXPECT_EQ(some[1].score, 100);
  ledger.place_exclusive({.pod_uid = "another"}, set_of({4, 6}));
  EXPECT_EQ(plugin.score(sdk::testing::Request(machine, ledger, {}, 2))[0].score, 100) << "no node has whole ones";
}

TEST(NumaFullCores, DeniesAResizeToPartsOfTheCoresThatAContainerHas) {
  const sdk::testing::Machine machine("numa:1 core:8 pu:2");
  const sdk::testing::Ledger ledger(machine);
  const Set six = set_of({0, 1, 2, 3, 4, 5});
  const auto verdict = [&](std::uint32_t cpus, const Set& had, topolet_occasion occasion) {
    sdk::testing::Request request(machine, ledger, {}, cpus);
    request.occasion(occasion).had(had);
    topolet_candidate its_own = request.view().candidates[0];
    its_own.usable = six.view();
    topolet_request offer = request.view();
    offer.candidates = &its_own;
    offer.candidate_count = 1;
    return Policy(full()).score(offer)[0];
  };
  const Verdict three = verdict(3, six, TOPOLET_OCCASION_RESIZE);
  EXPECT_EQ(three.kind, TOPOLET_VERDICT_REJECT);
  EXPECT_THAT(three.reason, HasSubstr("requested 3 cpus not multiple cpus per core = 2"));
  EXPECT_EQ(verdict(4, six, TOPOLET_OCCASION_RESIZE).kind, TOPOLET_VERDICT_SCORE);
  const Set parts = set_of({0, 2, 4});
  EXPECT_EQ(verdict(3, parts, TOPOLET_OCCASION_RESIZE).kind, TOPOLET_VERDICT_SCORE) << "it keeps what it has";
  EXPECT_EQ(verdict(3, parts, TOPOLET_OCCASION_REPAIR).kind, TOPOLET_VERDICT_SCORE);
}

/// Cores of one to four threads, some threads in other hands, CPUs numbered as they come.
struct RandomCores {
  explicit RandomCores(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::uint32_t cpu = 0;
    for (std::uint32_t core = 0; core < 2 + random() % 6; ++core) {
      machine.cores.emplace_back();
      const std::uint32_t threads = 1 + random() % 4;
      for (std::uint32_t thread = 0; thread < threads; ++thread) {
        machine.pus.push_back({cpu, core, core / 2, TOPOLET_NONE, 0, 0});
        machine.cores.back().insert(cpu);
        kinds[core % 2].insert(cpu);
        if (random() % 6 == 0) others.insert(cpu);
        ++cpu;
      }
    }
    wanted = 1 + random() % cpu;
  }

  /// Tries all sets of cores.
  bool can_be_made_up() const {
    for (std::uint32_t choice = 1; choice < 1U << machine.cores.size(); ++choice) {
      std::size_t cpus = 0;
      for (std::size_t i = 0; i < machine.cores.size(); ++i) {
        const bool is_free = (machine.cores[i] & others).empty();
        if ((choice >> i & 1U) != 0) cpus += is_free ? machine.cores[i].size() : 1000;
      }
      if (cpus == wanted) return true;
    }
    return false;
  }

  Machine machine{{.cores = 0}};
  std::vector<Set> kinds = std::vector<Set>(2);
  Set others;
  std::uint32_t wanted = 0;
};

TEST(NumaFullCores, AdmitsWhatWholeCoresAddUpToAndTakesThem) {
  std::size_t admitted = 0;
  std::size_t denied = 0;
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    const RandomCores scene(seed);
    for (const Alignment alignment : {Alignment::kNone, Alignment::kBestEffort}) {
      Request request(scene.machine, scene.wanted, scene.others);
      if (seed % 2 == 0) request.kinds(scene.kinds);
      request.candidate({0});
      if (!WholeCores(*request.view().topology, request.pick().usable).sizes_differ()) continue;
      const Policy policy(full(alignment));
      const bool rejects = policy.score(request.view())[0].kind == TOPOLET_VERDICT_REJECT;
      ASSERT_EQ(rejects, !scene.can_be_made_up()) << "seed " << seed;
      ++(rejects ? denied : admitted);
      if (rejects) continue;
      const CpuOrder order = policy.pick(request.pick());
      ASSERT_GE(order.cpus.size(), scene.wanted);
      const Set took = set_of({order.cpus.begin(), order.cpus.begin() + scene.wanted});
      EXPECT_TRUE(are_whole_cores(*request.view().topology, took.view()))
          << "seed " << seed << ": " << took.to_string();
      EXPECT_TRUE(order.narrow.empty() || (took - order.narrow).empty()) << "seed " << seed;
    }
  }
  EXPECT_GT(std::min(admitted, denied), 200U);
}

}  // namespace
}  // namespace topolet::numa
