// Which cores an isolated container is narrowed to where others need most of the rest.
#include "plugins/smt/isolation.hpp"

#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "plugins/smt/policy.hpp"

namespace topolet::smt {
namespace {

using sdk::Set;
using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Picked;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;

const Container kIsolated = {.settings = {{"smt", "isolate"}}};
const Container kHeavy = {.settings = {{"smt", "isolate"}, {"cpu-profile", "heavy"}}};

/// Four cores of two threads, siblings beside each other.
class Narrowed : public ::testing::Test {
 protected:
  std::string narrowed(const Container& container, std::uint32_t cpus, std::uint32_t min_shared,
                       std::uint32_t flags = 0) {
    Plugin plugin(topolet_plugin_v1, host_, {{"pair", "true"}});
    Request request(machine_, ledger_, container, cpus);
    request.min_shared_cpus(min_shared).flags(flags);
    const Picked picked = plugin.pick(request, request.view().candidate_count - 1);
    return picked.narrowed ? picked.narrow.to_string() : "all";
  }

  Machine machine_{"numa:1 core:4 pu:2"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(Narrowed, HeavyContainersShareCoresWithThemselvesBeforeOthersLackCpus) {
  EXPECT_EQ(narrowed(kHeavy, 2, 4), "0,2,4,6");
  EXPECT_EQ(narrowed(kHeavy, 2, 5), "all") << "one more would not be left if two siblings idled";
}

TEST_F(Narrowed, LeavesTheChoiceToOthersWhereItCannotMakeTooManyIdle) {
  EXPECT_EQ(narrowed(kIsolated, 3, 4), "all");
  EXPECT_EQ(narrowed(kIsolated, 3, 4, TOPOLET_REQUEST_SPREAD_CORES), "0-3") << "one of each core would make three idle";
}

TEST_F(Narrowed, LeavesRoomForTheRestOfThePod) {
  Container of_pod = kIsolated;
  of_pod.pod_cpu_request_milli = 8000;
  Plugin plugin(topolet_plugin_v1, host_);
  const auto beside = [&](std::uint32_t cpus, const Set& chosen) {
    Request request(machine_, ledger_, of_pod, cpus);
    request.flags(TOPOLET_REQUEST_POD_SCOPE);
    return plugin.pick(request, request.view().candidate_count - 1, chosen);
  };
  EXPECT_EQ(beside(3, set_of({0, 1, 2})).withhold.to_string(), "");
  EXPECT_EQ(beside(3, set_of({0, 1, 2})).unmet,
            "isolating CPUs 0-2 would leave 4 CPUs for the pod's other containers, which request 5 (topolet.io/smt = "
            "isolate)");
  of_pod.pod_cpu_request_milli = 7000;
  EXPECT_EQ(beside(3, set_of({0, 1, 2})).withhold.to_string(), "3");
  of_pod.pod_cpu_request_milli = 8000;
  Container mate = of_pod;
  mate.name = "mate";
  ledger_.place_exclusive(mate, set_of({6, 7}));
  EXPECT_EQ(beside(3, set_of({0, 1, 2})).unmet,
            "isolating CPUs 0-2 would leave 2 CPUs for the pod's other containers, which request 3 (topolet.io/smt = "
            "isolate)");
}

/// Cores of one to four threads, of one kind of CPU, all in the pool. CPUs are numbered core by core.
class Uneven {
 public:
  explicit Uneven(std::uint64_t seed) : random_(seed) {
    std::uint32_t cpu = 0;
    for (std::uint32_t core = 0; core < 3 + random_() % 3; ++core) {
      const std::uint32_t threads = 1 + random_() % 4;
      sizes_.push_back(threads);
      for (std::uint32_t i = 0; i < threads; ++i) {
        topolet_pu pu{};
        pu.os_index = cpu;
        pu.core = core;
        pus_.push_back(pu);
        all_.insert(cpu++);
      }
    }
    topology_.pus = pus_.data();
    topology_.pu_count = static_cast<std::uint32_t>(pus_.size());
    topology_.pu_stride = sizeof(topolet_pu);
    topology_.core_count = static_cast<std::uint32_t>(sizes_.size());
    ledger_.pool = all_.view();
    request_.topology = &topology_;
    request_.ledger = &ledger_;
  }
  Uneven(const Uneven&) = delete;
  Uneven& operator=(const Uneven&) = delete;

  const topolet_request& request() const { return request_; }
  const Set& all() const { return all_; }
  const topolet_topology& topology() const { return topology_; }

  /// The fewest CPUs of whole cores that `cpus` can come from, by trying every set of cores; 0 if there is none.
  std::size_t fewest(std::size_t cpus) const {
    std::size_t best = 0;
    for (std::uint32_t some = 0; some < 1U << sizes_.size(); ++some) {
      std::size_t sum = 0;
      for (std::size_t core = 0; core < sizes_.size(); ++core) sum += (some >> core & 1U) != 0 ? sizes_[core] : 0;
      if (sum >= cpus && (best == 0 || sum < best)) best = sum;
    }
    return best;
  }

 private:
  std::mt19937_64 random_;
  std::vector<std::uint32_t> sizes_;
  std::vector<topolet_pu> pus_;
  Set all_;
  topolet_topology topology_{};
  topolet_ledger ledger_{};
  topolet_request request_{};
};

TEST(IsolationProperty, FitsIfAnySetOfWholeCoresDoes) {
  std::size_t fitting = 0;
  std::size_t not_fitting = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Uneven machine(seed);
    const sdk::CoreMap cores(machine.topology());
    for (std::size_t cpus = 1; cpus <= machine.all().size(); ++cpus) {
      const std::size_t fewest = machine.fewest(cpus);
      for (std::size_t kept = 0; kept <= machine.all().size() - cpus; ++kept) {
        Demand demand;
        demand.exclusive_cpus = cpus;
        demand.isolated = true;
        topolet_request request = machine.request();
        request.min_shared_cpus = static_cast<std::uint32_t>(kept);
        const Set narrowed = Isolation(cores, request, demand).cpus_to_choose_from(machine.all().view());
        const bool fits = machine.all().size() - fewest >= kept;
        ASSERT_EQ(!narrowed.empty(), fits) << "seed " << seed << ", " << cpus << " CPUs, " << kept << " kept";
        ASSERT_EQ((narrowed - cores.on_whole_cores(narrowed.view())).to_string(), "") << "whole cores";
        ++(fits ? fitting : not_fitting);
      }
    }
  }
  EXPECT_GT(fitting, 1000U);
  EXPECT_GT(not_fitting, 500U);
}

}  // namespace
}  // namespace topolet::smt
