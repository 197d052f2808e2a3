// Picks are as good as the best possible ones, found by trying all choices on small machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <random>
#include <tuple>

#include "plugins/smt/policy.hpp"

namespace topolet::smt {
namespace {

using sdk::Set;
using Cpus = std::vector<std::uint32_t>;

/// One node of some cores of one to four threads each, and who is there. CPUs are numbered across the cores.
class Scene {
 public:
  explicit Scene(std::uint64_t seed, std::uint32_t flags = 0) : random_(seed) {
    request_.min_shared_cpus = 1;
    request_.flags = flags;
    const std::size_t cores = 2 + below(3);
    for (std::size_t core = 0; core < cores; ++core) cores_.emplace_back(1 + below(4));
    std::uint32_t cpu = 0;
    for (std::size_t thread = 0; thread < 4; ++thread) {
      for (Cpus& core : cores_) {
        if (thread < core.size()) core[thread] = cpu++;
      }
    }
    for (std::uint32_t i = 0; i < cpu; ++i) {
      const std::uint64_t fate = below(6);
      (fate == 0 ? heavy_ : fate == 1 ? taken_ : free_).insert(i);
    }
    for (const Cpus& core : cores_) core_sets_.push_back(set_of(core));
    fill(cpu);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  const Set& free() const { return free_; }
  const std::vector<Set>& cores() const { return core_sets_; }

  /// 0 CPUs: it shares, and asks for `milli`.
  topolet_pick_request ask(const char* key, const char* value, std::uint32_t cpus, std::int64_t milli = 0,
                           topolet_set chosen = {nullptr, 0}) {
    setting_ = {sdk::borrow(key), sdk::borrow(value)};
    workload_.struct_size = sizeof(workload_);
    workload_.settings = {&setting_, 1};
    demand_.struct_size = sizeof(demand_);
    demand_.cpu_request_milli = milli;
    workload_.demand = &demand_;
    request_.exclusive = cpus > 0 ? 1 : 0;
    request_.exclusive_cpus = cpus;
    return {sizeof(topolet_pick_request),
            0,
            &request_,
            free_.view(),
            chosen,
            cpus,
            sdk::size_of(chosen) > 0 ? TOPOLET_PICK_REVIEW : TOPOLET_PICK_CHOOSE};
  }

  bool has_heavy(const Set& core) const { return sdk::size_of_both(core.view(), heavy_.view()) > 0; }
  std::size_t beside_heavy(const Set& cpus) const {
    std::size_t count = 0;
    for (const Set& core : core_sets_) count += has_heavy(core) ? (core & cpus).size() : 0;
    return count;
  }
  std::size_t own_pairs(const Set& cpus) const {
    std::size_t count = 0;
    for (const Set& core : core_sets_) count += std::max<std::size_t>(1, (core & cpus).size()) - 1;
    return count;
  }
  Set whole() const {
    Set whole;
    for (const Set& core : core_sets_) {
      if ((core - free_).empty()) whole |= core;
    }
    return whole;
  }

  std::string words() const {
    std::string text = "cores";
    for (const Set& core : core_sets_) text += ' ' + core.to_string() + ';';
    return text + " free " + free_.to_string() + ", heavy " + heavy_.to_string();
  }

 private:
  static Set set_of(const Cpus& cpus) {
    Set set;
    for (const std::uint32_t cpu : cpus) set.insert(cpu);
    return set;
  }

  void fill(std::uint32_t cpus) {
    for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
      std::uint32_t core = 0;
      while (!core_sets_[core].has(cpu)) ++core;
      pus_.push_back({cpu, core, TOPOLET_NONE, TOPOLET_NONE, 0, 0});
    }
    for (const Set& core : core_sets_) core_views_.push_back(core.view());
    topology_.struct_size = sizeof(topology_);
    topology_.pus = pus_.data(), topology_.pu_count = cpus, topology_.pu_stride = sizeof(topolet_pu);
    topology_.cores = core_views_.data(), topology_.core_count = core_views_.size();
    entry_.mode = TOPOLET_MODE_EXCLUSIVE;
    entry_.cpus = heavy_.view();
    entry_.settings = {&heavy_setting_, 1};
    ledger_.struct_size = sizeof(ledger_);
    ledger_.pool = free_.view();
    ledger_.entries = &entry_, ledger_.entry_count = 1, ledger_.entry_stride = sizeof(entry_);
    candidate_.cpus = candidate_.usable = free_.view();
    request_.struct_size = sizeof(request_);
    request_.candidates = &candidate_, request_.candidate_count = 1, request_.candidate_stride = sizeof(candidate_);
    request_.workload = &workload_, request_.topology = &topology_, request_.ledger = &ledger_;
  }

  std::mt19937_64 random_;
  std::deque<Cpus> cores_;
  std::vector<Set> core_sets_;
  Set free_, heavy_, taken_;
  std::vector<topolet_pu> pus_;
  std::vector<topolet_set> core_views_;
  topolet_kv heavy_setting_{TOPOLET_STR("cpu-profile"), TOPOLET_STR("heavy")};
  topolet_kv setting_{};
  topolet_demand demand_{};
  topolet_workload workload_{};
  topolet_ledger_entry entry_{};
  topolet_ledger ledger_{};
  topolet_candidate candidate_{};
  topolet_topology topology_{};
  topolet_request request_{};
};

void for_each_choice(const Set& from, std::size_t count, const std::function<void(const Set&)>& visit) {
  const Cpus all = from.indices();
  std::vector<bool> in(all.size());
  std::fill(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count), true);
  do {
    Set choice;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (in[i]) choice.insert(all[i]);
    }
    visit(choice);
  } while (std::prev_permutation(in.begin(), in.end()));
}

Set narrow_of(const Policy& policy, const topolet_pick_request& asked) {
  Set narrow = policy.pick(asked).narrow;
  return narrow.empty() ? Set(asked.usable) : narrow;
}

using Cost = std::tuple<std::size_t, std::size_t>;
using CostOf = std::function<Cost(const Set&)>;

/// Whatever is taken of what is left is the best of all choices.
void expect_best(Scene& scene, const Set& narrow, std::size_t wanted, const CostOf& cost_of) {
  ASSERT_GE(narrow.size(), wanted);
  Cost best{SIZE_MAX, SIZE_MAX};
  for_each_choice(scene.free(), wanted, [&](const Set& choice) { best = std::min(best, cost_of(choice)); });
  for_each_choice(narrow, wanted, [&](const Set& choice) {
    EXPECT_EQ(cost_of(choice), best) << choice.to_string() << " of " << narrow.to_string() << " for " << wanted;
  });
}

constexpr std::uint64_t kScenes = 120;

TEST(SmtProperties, HeavyContainersMeetAndPairAsLittleAsCanBe) {
  const Policy policy({.pair = Pair::kAnnotated});
  for (std::uint64_t seed = 0; seed < kScenes && !testing::Test::HasFailure(); ++seed) {
    Scene scene(seed);
    SCOPED_TRACE(scene.words());
    for (std::uint32_t wanted = 1; wanted <= scene.free().size(); ++wanted) {
      const Set narrow = narrow_of(policy, scene.ask("cpu-profile", "heavy", wanted));
      expect_best(scene, narrow, wanted, [&](const Set& cpus) {
        return Cost{scene.beside_heavy(cpus), scene.own_pairs(cpus)};
      });
    }
  }
}

TEST(SmtProperties, LightContainersFillTheSiblingsOfHeavyOnes) {
  const Policy policy({.pair = Pair::kAnnotated});
  for (std::uint64_t seed = 0; seed < kScenes && !testing::Test::HasFailure(); ++seed) {
    Scene scene(seed);
    SCOPED_TRACE(scene.words());
    for (std::uint32_t wanted = 1; wanted <= scene.free().size(); ++wanted) {
      const Set narrow = narrow_of(policy, scene.ask("cpu-profile", "light", wanted));
      expect_best(scene, narrow, wanted, [&](const Set& cpus) {
        return Cost{scene.own_pairs(cpus), wanted - scene.beside_heavy(cpus)};
      });
    }
  }
}

TEST(SmtProperties, OthersAreBesideHeavyContainersAsLittleAsCanBe) {
  const Policy policy({.pair = Pair::kAnnotated});
  for (std::uint64_t seed = 0; seed < kScenes && !testing::Test::HasFailure(); ++seed) {
    Scene scene(seed);
    SCOPED_TRACE(scene.words());
    for (std::uint32_t wanted = 1; wanted <= scene.free().size(); ++wanted) {
      const Set narrow = narrow_of(policy, scene.ask("other", "", wanted));
      expect_best(scene, narrow, wanted, [&](const Set& cpus) { return Cost{scene.beside_heavy(cpus), 0}; });
      const Set shared = narrow_of(policy, scene.ask("other", "", 0, std::int64_t{1000} * wanted));
      EXPECT_TRUE(scene.beside_heavy(shared) == 0 || shared == scene.free()) << shared.to_string();
      EXPECT_GE(shared.size(), wanted);
    }
  }
}

TEST(SmtProperties, SharedContainersGetWhatTheyAskForAndNoMoreThreadsOfACoreThanThatTakes) {
  const Policy policy({.pair = Pair::kAnnotated});
  for (std::uint64_t seed = 0; seed < kScenes && !testing::Test::HasFailure(); ++seed) {
    Scene scene(seed);
    SCOPED_TRACE(scene.words());
    std::size_t apart = 0;
    for (const Set& core : scene.cores()) apart += !scene.has_heavy(core) && !(core & scene.free()).empty() ? 1U : 0U;
    for (std::uint32_t wanted = 1; wanted <= scene.free().size(); ++wanted) {
      const std::int64_t milli = std::int64_t{1000} * wanted;
      const Set heavy = narrow_of(policy, scene.ask("cpu-profile", "heavy", 0, milli));
      const Set light = narrow_of(policy, scene.ask("cpu-profile", "light", 0, milli));
      EXPECT_TRUE((heavy - scene.free()).empty() && (light - scene.free()).empty());
      EXPECT_GE(heavy.size(), wanted);
      EXPECT_GE(light.size(), wanted);
      if (wanted > apart) continue;
      EXPECT_EQ(scene.own_pairs(heavy) + scene.beside_heavy(heavy), 0U) << heavy.to_string() << " for " << wanted;
      const bool both_fit = wanted + apart <= scene.free().size();
      EXPECT_TRUE(!both_fit || (heavy & light).empty()) << heavy.to_string() << " and " << light.to_string();
    }
  }
}

/// Whole cores belong to the container, used or idle, if they fit; otherwise nothing is withheld, and it says so.
void expect_whole_cores(const char* key, const char* value, std::uint32_t flags, bool always_unmet) {
  const Policy policy({});
  for (std::uint64_t seed = 0; seed < kScenes && !testing::Test::HasFailure(); ++seed) {
    Scene scene(seed, flags);
    SCOPED_TRACE(scene.words());
    for (std::uint32_t wanted = 1; wanted <= scene.free().size(); ++wanted) {
      const bool fits = scene.whole().size() >= wanted;
      const Set narrow = narrow_of(policy, scene.ask(key, value, wanted));
      for_each_choice(narrow, wanted, [&](const Set& chosen) {
        const PickAnswer beside = policy.pick(scene.ask(key, value, wanted, 0, chosen.view()));
        const Set held = chosen | beside.withhold;
        if (fits) {
          EXPECT_EQ(scene.whole().size(), (scene.whole() | held).size());
          for (const Set& core : scene.cores()) {
            EXPECT_TRUE((core & held).empty() || (core - held).empty()) << held.to_string() << " for " << wanted;
          }
        } else if (!(chosen - scene.whole()).empty()) {
          EXPECT_TRUE(beside.withhold.empty());
          EXPECT_TRUE(!always_unmet || !beside.unmet.empty());
        }
      });
    }
  }
}

TEST(SmtProperties, IsolationIsWholeOrUnmet) { expect_whole_cores("smt", "isolate", 0, true); }

TEST(SmtProperties, FullPcpusOnlyGivesWholeCoresWhereThereAreEnough) {
  expect_whole_cores("smt", "share", TOPOLET_REQUEST_WHOLE_CORES, false);
}

}  // namespace
}  // namespace topolet::smt
