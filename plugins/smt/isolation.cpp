#include "plugins/smt/isolation.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>

#include "plugins/smt/words.hpp"

namespace topolet::smt {
namespace {

using sdk::Set;
using sdk::Verdict;

constexpr std::int32_t kFits = 100;
constexpr std::int32_t kFitsWithoutThePod = 50;

std::size_t surplus(std::size_t have, std::size_t need) { return have > need ? have - need : 0; }

}  // namespace

/// How many CPUs may stay idle beside the container.
std::size_t Isolation::may_be_idle(topolet_set usable) const {
  const std::size_t for_pod = surplus(sdk::size_of(usable), wish_.cpus + wish_.rest_of_pod);
  // Those that the kernel isolated are not in the pool.
  const topolet_set pool = request_.ledger->pool;
  if (sdk::size_of_both(usable, pool) == 0) return for_pod;
  return std::min(for_pod, surplus(sdk::size_of(pool), wish_.cpus + options_.min_shared_cpus));
}

/// How many would, if others chose the CPUs from these cores. `apart`: each from another core.
std::size_t Isolation::at_worst_idle(const Set& whole, bool apart) const {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  std::size_t most = 1;
  for (const std::uint32_t core : cores_.cores_of(whole)) {
    least = std::min(least, cores_.threads_of(core));
    most = std::max(most, cores_.threads_of(core));
  }
  if (apart) return wish_.cpus * (most - 1);
  // Whoever orders CPUs takes whole cores as long as it can.
  return least == most ? (most - wish_.cpus % most) % most : most - 1;
}

/// The whole cores by kind of CPU, the fastest first, and then all: as topolet takes CPUs.
std::vector<Set> Isolation::alike(const Set& whole) const {
  std::vector<Set> parts;
  const auto kinds = sdk::cpu_kinds(*request_.topology);
  for (std::size_t i = kinds.size(); i > 0; --i) parts.push_back(whole & Set(kinds[i - 1].cpus));
  parts.push_back(whole);
  return parts;
}

/// So many of these cores as the container needs, with the fewest CPUs to spare. Empty if they are too few. Cores may
/// have any number of threads, as some may be offline: all sums of them up to what is needed are looked at.
Set Isolation::tight(const Set& whole) const {
  std::map<std::size_t, std::vector<std::uint32_t>, std::greater<>> by_size;
  for (const std::uint32_t core : cores_.cores_of(whole)) by_size[cores_.threads_of(core)].push_back(core);
  const std::size_t sums = wish_.cpus + cores_.most_threads();
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  // By size, so far: how many cores of that size are in a sum, as few as can be of the smaller ones; kNone: no such
  // sum.
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
  std::size_t sum = wish_.cpus;
  while (!used.empty() && sum < sums && used.back()[sum] == kNone) ++sum;
  if (used.empty() || sum == sums) return {};
  std::vector<std::uint32_t> taken;
  for (auto group = by_size.rbegin(); group != by_size.rend(); ++group, used.pop_back()) {
    const std::size_t count = used.back()[sum];
    taken.insert(taken.end(), group->second.begin(), group->second.begin() + static_cast<std::ptrdiff_t>(count));
    sum -= count * group->first;
  }
  return cores_.on(taken, whole);
}

/// Empty if more than `idle` CPUs would stay idle.
Set Isolation::narrowed_to(const Set& whole, std::size_t idle) const {
  if (whole.size() < wish_.cpus) return {};
  if (at_worst_idle(whole, options_.spreads_over_cores) <= idle) return whole;
  Set taken = tight(whole);
  return taken.size() >= wish_.cpus && taken.size() - wish_.cpus <= idle ? taken : Set();
}

Set Isolation::narrowed(topolet_set usable) const {
  const Set whole = cores_.whole(usable);
  const std::size_t idle = may_be_idle(usable);
  if (wish_.profile == Profile::kHeavy && !wish_.whole_cores) {
    Set each = cores_.one_of_each(whole.view());
    if (each.size() >= wish_.cpus && at_worst_idle(whole, true) <= idle) return each;
  }
  if (Set all = narrowed_to(whole, idle); all.size() == whole.size()) return all;
  for (const Set& part : alike(whole)) {
    if (Set narrowed = narrowed_to(part, idle); !narrowed.empty()) return narrowed;
  }
  return {};
}

Verdict Isolation::judge(const topolet_candidate& candidate, const Set& whole) const {
  const Set free = whole & Set(candidate.free);
  const std::string place = on_whole_cores(candidate, free.size());
  const std::string to_isolate = " to isolate " + std::to_string(wish_.cpus);
  if (free.size() < wish_.cpus) {
    return {TOPOLET_VERDICT_SCORE, 0, place + ": too few" + to_isolate};
  }
  const bool is_easy = may_be_idle(candidate.free) >= wish_.cpus * (cores_.most_threads() - 1);
  if (!is_easy && narrowed(candidate.free).empty()) {
    const bool for_pod = surplus(sdk::size_of(candidate.free), tight(free).size()) < wish_.rest_of_pod;
    return {TOPOLET_VERDICT_SCORE, 0,
            place + to_isolate + ", but " +
                (for_pod ? others_of_pod(wish_.rest_of_pod)
                         : "placement.min-shared-cpus keeps " + std::to_string(options_.min_shared_cpus)) +
                (for_pod ? " would find too few" : "")};
  }
  // The others may be containers of one CPU each.
  const std::size_t for_others = wish_.rest_of_pod * cores_.threads_per_core();
  if (wish_.rest_of_pod > 0 && free.size() < tight(free).size() + for_others) {
    return {TOPOLET_VERDICT_SCORE, kFitsWithoutThePod,
            place + to_isolate + ", but perhaps not " + others_of_pod(wish_.rest_of_pod) + " too"};
  }
  return {TOPOLET_VERDICT_SCORE, kFits, place + to_isolate};
}

std::string Isolation::too_few_for_pod(topolet_set usable, const Set& chosen, const Set& siblings) const {
  const std::size_t left = (Set(usable) - chosen - siblings).size();
  if (left >= wish_.rest_of_pod) return "";
  return "isolating " + chosen.to_string() + " would leave " + counted(left, "CPU") + " for " +
         others_of_pod(wish_.rest_of_pod) + " (" + wish_.isolated_by + ')';
}

}  // namespace topolet::smt
