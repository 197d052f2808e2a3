#include "plugins/smt/isolation.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>

#include "plugins/smt/core_sets.hpp"
#include "plugins/smt/reasons.hpp"

namespace topolet::smt {
namespace {

using sdk::Set;
using sdk::Verdict;

constexpr std::int32_t kFits = 100;
constexpr std::int32_t kFitsPerhapsWithoutPod = 50;

std::size_t surplus(std::size_t have, std::size_t need) { return have > need ? have - need : 0; }

}  // namespace

/// How many CPUs may stay idle beside the container and still leave enough for its pod and for the pool.
std::size_t Isolation::allowed_idle(topolet_set usable) const {
  const std::size_t for_pod = surplus(sdk::size_of(usable), demand_.exclusive_cpus + demand_.rest_of_pod_cpus);
  // CPUs that the kernel isolates (isolcpus) are not in the pool.
  const topolet_set pool = request_.ledger->pool;
  if (sdk::size_of_both(usable, pool) == 0) return for_pod;
  return std::min(for_pod, surplus(sdk::size_of(pool), demand_.exclusive_cpus + request_.min_shared_cpus));
}

/// How many would be idle after the worst choice from these cores that other policies may make. `one_per_core`: the
/// CPUs are all taken from different cores.
std::size_t Isolation::worst_case_idle(const Set& whole, bool one_per_core) const {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  std::size_t most = 1;
  for (const std::uint32_t core : cores_of(cores_, whole)) {
    least = std::min(least, cores_.threads_of(core));
    most = std::max(most, cores_.threads_of(core));
  }
  if (one_per_core) return demand_.exclusive_cpus * (most - 1);
  // Policies that order CPUs take whole cores as long as the request fills them.
  return least == most ? (most - demand_.exclusive_cpus % most) % most : most - 1;
}

/// The whole cores of each kind of CPU, the fastest first, and finally all of them: the order in which topolet tries
/// kinds.
std::vector<Set> Isolation::by_cpu_kind(const Set& whole) const {
  std::vector<Set> parts;
  const auto kinds = sdk::cpu_kinds(*request_.topology);
  for (std::size_t i = kinds.size(); i > 0; --i) parts.push_back(whole & Set(kinds[i - 1].cpus));
  parts.push_back(whole);
  return parts;
}

/// The cores for the container that have the fewest CPUs in all; empty if there are too few cores. Cores may have any
/// number of threads, since some may be offline, so this looks at all sums of threads up to what is needed.
Set Isolation::fewest_cpus(const Set& whole) const {
  std::map<std::size_t, std::vector<std::uint32_t>, std::greater<>> by_size;
  for (const std::uint32_t core : cores_of(cores_, whole)) by_size[cores_.threads_of(core)].push_back(core);
  const std::size_t sums = demand_.exclusive_cpus + cores_.most_threads();
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  // For each size of core so far, and each sum of threads: how many cores of that size the sum needs, with as few
  // smaller cores as possible; kNone: no cores have this sum.
  std::vector<std::vector<std::size_t>> used;
  for (const auto& [size, cores] : by_size) {
    std::vector<std::size_t> now(sums, kNone);
    for (std::size_t sum = 0; sum < sums; ++sum) {
      const bool before = used.empty() ? sum == 0 : used.back()[sum] != kNone;
      if (before) now[sum] = 0;
      const bool one_more = !before && sum >= size && now[sum - size] != kNone && now[sum - size] < cores.size();
      if (one_more) now[sum] = now[sum - size] + 1;
    }
    used.push_back(std::move(now));
  }
  std::size_t sum = demand_.exclusive_cpus;
  while (!used.empty() && sum < sums && used.back()[sum] == kNone) ++sum;
  if (used.empty() || sum == sums) return {};
  std::vector<std::uint32_t> taken;
  for (auto group = by_size.rbegin(); group != by_size.rend(); ++group, used.pop_back()) {
    const std::size_t count = used.back()[sum];
    taken.insert(taken.end(), group->second.begin(), group->second.begin() + static_cast<std::ptrdiff_t>(count));
    sum -= count * group->first;
  }
  return on_cores(cores_, taken, whole);
}

/// Chooses whole cores; returns none if more than `most_idle` CPUs would stay idle.
Set Isolation::choose_from(const Set& whole, std::size_t most_idle) const {
  if (whole.size() < demand_.exclusive_cpus) return {};
  const bool one_per_core = sdk::has_flag(request_, TOPOLET_REQUEST_SPREAD_CORES);
  if (worst_case_idle(whole, one_per_core) <= most_idle) return whole;
  Set taken = fewest_cpus(whole);
  return taken.size() >= demand_.exclusive_cpus && taken.size() - demand_.exclusive_cpus <= most_idle ? taken : Set();
}

Set Isolation::cpus_to_choose_from(topolet_set usable) const {
  const Set whole = cores_.on_whole_cores(usable);
  const std::size_t idle = allowed_idle(usable);
  if (demand_.profile == Profile::kHeavy && !demand_.whole_cores) {
    Set each = cores_.lowest_of_each_core(whole.view());
    if (each.size() >= demand_.exclusive_cpus && worst_case_idle(whole, true) <= idle) return each;
  }
  if (Set all = choose_from(whole, idle); all.size() == whole.size()) return all;
  for (const Set& part : by_cpu_kind(whole)) {
    if (Set some = choose_from(part, idle); !some.empty()) return some;
  }
  return {};
}

bool Isolation::fits(topolet_set free, const Set& whole) const {
  if (whole.size() < demand_.exclusive_cpus) return false;
  const bool is_easy = allowed_idle(free) >= demand_.exclusive_cpus * (cores_.most_threads() - 1);
  return is_easy || !cpus_to_choose_from(free).empty();
}

Verdict Isolation::score(const topolet_candidate& candidate, const Set& whole) const {
  const Set free = whole & Set(candidate.usable);
  const std::string text = free_whole_cores(candidate, free.size());
  const std::string to_isolate = " to isolate " + std::to_string(demand_.exclusive_cpus);
  if (free.size() < demand_.exclusive_cpus) {
    return {TOPOLET_VERDICT_SCORE, 0, text + ", too few" + to_isolate};
  }
  const std::string enough = text + ", enough" + to_isolate;
  if (!fits(candidate.usable, free)) {
    const bool for_pod = surplus(sdk::size_of(candidate.usable), fewest_cpus(free).size()) < demand_.rest_of_pod_cpus;
    const std::string pod = other_containers_of_pod(demand_.rest_of_pod_cpus) + ", would find too few";
    const std::string pool =
        "placement.min-shared-cpus keeps " + std::to_string(request_.min_shared_cpus) + " in the shared pool";
    return {TOPOLET_VERDICT_SCORE, 0, enough + ", but " + (for_pod ? pod : pool)};
  }
  // The others may be containers of one CPU each, and then need a whole core for each CPU.
  const std::size_t for_others = demand_.rest_of_pod_cpus * cores_.threads_per_core();
  if (demand_.rest_of_pod_cpus > 0 && free.size() < fewest_cpus(free).size() + for_others) {
    return {TOPOLET_VERDICT_SCORE, kFitsPerhapsWithoutPod,
            enough + ", but perhaps not to isolate " + other_containers_of_pod(demand_.rest_of_pod_cpus) + ", as well"};
  }
  return {TOPOLET_VERDICT_SCORE, kFits, enough};
}

std::string Isolation::shortage_for_pod(topolet_set usable, const Set& chosen, const Set& siblings) const {
  const std::size_t left = (Set(usable) - chosen - siblings).size();
  if (left >= demand_.rest_of_pod_cpus) return "";
  return "isolating " + sdk::cpu_names(chosen) + " would leave " + sdk::counted(left, "CPU") + " for " +
         other_containers_of_pod(demand_.rest_of_pod_cpus) + " (" + demand_.isolated_by + ')';
}

}  // namespace topolet::smt
