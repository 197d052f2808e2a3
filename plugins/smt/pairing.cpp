#include "plugins/smt/pairing.hpp"

#include <algorithm>

namespace topolet::smt {

using sdk::Set;

/// The usable threads of one core.
struct Pairing::CoreThreads {
  std::vector<std::uint32_t> cpus;
  std::size_t heavy_cpus = 0;          ///< those of them with a heavy container
  bool has_heavy = false;              ///< a heavy container runs on the core
  bool has_heavy_on_unusable = false;  ///< on a thread that is not usable, so it stays
  bool has_one_thread = false;         ///< the core has no siblings, which suits heavy containers best
};

namespace {

/// The order of the levels: paired; alone; alone on cores without siblings; then the second thread of a core, the third
/// and so on; and last, by thread again, the conflicts.
constexpr std::size_t kPairedLevel = 0;
constexpr std::size_t kAloneLevel = 1;
constexpr std::size_t kAloneOnSingleThreadLevel = 2;
constexpr std::size_t kMostThreads = 64;

std::size_t own_sibling_level(std::size_t thread) { return kAloneOnSingleThreadLevel + std::min(thread, kMostThreads); }
std::size_t conflict_level(std::size_t thread) {
  return own_sibling_level(kMostThreads) + 1 + std::min(thread, kMostThreads);
}

Neighbours neighbours_at(std::size_t level) {
  if (level == kPairedLevel) return Neighbours::kPaired;
  if (level == kAloneLevel || level == kAloneOnSingleThreadLevel) return Neighbours::kAlone;
  return level < conflict_level(0) ? Neighbours::kOwnSibling : Neighbours::kConflict;
}

void add_cpu(std::vector<Level>& levels, std::size_t at, std::uint32_t cpu) {
  if (levels.size() <= at) levels.resize(at + 1);
  levels[at].cpus.insert(cpu);
}

/// For a container of which nothing is known.
void rank_for_unknown(const std::vector<std::uint32_t>& cpus, bool has_heavy, std::vector<Level>& levels) {
  for (const std::uint32_t cpu : cpus) add_cpu(levels, has_heavy ? conflict_level(0) : kAloneLevel, cpu);
}

bool shares_cpus(const topolet_ledger_entry& entry) {
  return entry.mode == TOPOLET_MODE_SHARED || entry.mode == TOPOLET_MODE_RESERVED;
}

bool have_same_words(topolet_set a, topolet_set b) {
  return a.count == b.count && std::equal(a.words, a.words + a.count, b.words);
}

std::int64_t milli_of(const topolet_demand* demand) {
  return demand == nullptr ? 0 : std::max<std::int64_t>(0, demand->cpu_request_milli);
}

}  // namespace

Pairing::Pairing(const sdk::CoreMap& cores, const topolet_ledger& ledger, const Profiles& profiles,
                 const Demand& demand)
    : cores_(cores),
      profile_(demand.profile),
      busy_hours_(demand.busy_hours),
      exclusive_(demand.exclusive_cpus > 0),
      heavy_containers_(cores.os_index_end(), 0),
      light_shared_containers_(cores.os_index_end(), 0),
      heavy_cpus_(cores.core_count(), 0) {
  const auto entries = sdk::entries(ledger);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const topolet_ledger_entry& entry = entries[i];
    const LoadProfile of = profiles.of_entry(i);
    if (competes_with(entry, of.profile)) add_sharer(entry);
    const bool heavy = of.profile == Profile::kHeavy;
    if (entry.mode == TOPOLET_MODE_FOREIGN || of.profile == Profile::kUnknown) continue;
    if (heavy ? !is_disturbed_by(of) : !shares_cpus(entry)) continue;
    sdk::for_each_index(entry.cpus, [&](std::uint32_t cpu) {
      const std::uint32_t core = cores_.core_of(cpu);
      if (core == TOPOLET_NONE) return;
      if (heavy && heavy_containers_[cpu]++ == 0) ++heavy_cpus_[core];
      if (!heavy) ++light_shared_containers_[cpu];
    });
  }
}

/// Returns false if both are heavy, but never in the same hour.
bool Pairing::is_disturbed_by(const LoadProfile& other) const {
  return profile_ != Profile::kHeavy || (busy_hours_ & other.busy_hours) != 0;
}

void Pairing::add_sharer(const topolet_ledger_entry& entry) {
  const std::int64_t milli = milli_of(entry.demand);
  const auto same = std::find_if(sharers_.begin(), sharers_.end(), [&](const Sharers& known) {
    return known.request_milli == milli && have_same_words(known.cpus, entry.cpus);
  });
  if (same != sharers_.end()) {
    ++same->containers;
  } else {
    sharers_.push_back({entry.cpus, milli, 1});
  }
}

/// Returns true if heavy containers should rather share CPU `a` than `b` of a core: the one that they have already,
/// else the one with fewer light containers.
bool Pairing::suits_heavy_better(std::uint32_t a, std::uint32_t b) const {
  if (heavy_containers_[a] != heavy_containers_[b]) return heavy_containers_[a] > heavy_containers_[b];
  return light_shared_containers_[a] != light_shared_containers_[b]
             ? light_shared_containers_[a] < light_shared_containers_[b]
             : a < b;
}

void Pairing::rank_for_heavy(CoreThreads core, std::vector<Level>& levels) const {
  std::sort(core.cpus.begin(), core.cpus.end(), [this](auto a, auto b) { return suits_heavy_better(a, b); });
  // An exclusive container displaces those that share the CPU it takes. It meets a heavy container only if that one has
  // another thread of the core as well.
  const bool conflicts = core.has_heavy_on_unusable || (exclusive_ && core.heavy_cpus > 1);
  for (std::size_t thread = 0; thread < core.cpus.size(); ++thread) {
    const std::size_t without_conflict = thread == 0 ? kPairedLevel : own_sibling_level(thread);
    add_cpu(levels, conflicts ? conflict_level(thread) : without_conflict, core.cpus[thread]);
  }
}

void Pairing::rank_for_light_exclusive(CoreThreads core, std::vector<Level>& levels) const {
  std::sort(core.cpus.begin(), core.cpus.end(), [this](auto a, auto b) { return suits_heavy_better(b, a); });
  for (std::size_t thread = 0; thread < core.cpus.size(); ++thread) {
    const std::uint32_t cpu = core.cpus[thread];
    const std::size_t alone = core.has_one_thread ? kAloneOnSingleThreadLevel : kAloneLevel;
    const std::size_t first = core.has_heavy ? kPairedLevel : alone;
    const std::size_t without_conflict = thread == 0 ? first : own_sibling_level(core.has_heavy ? 1 : 2);
    add_cpu(levels, heavy_containers_[cpu] > 0 ? conflict_level(0) : without_conflict, cpu);
  }
}

void Pairing::rank_for_light_shared(CoreThreads core, std::vector<Level>& levels) const {
  const auto for_heavy =
      std::min_element(core.cpus.begin(), core.cpus.end(), [this](auto a, auto b) { return suits_heavy_better(a, b); });
  for (const std::uint32_t cpu : core.cpus) {
    const bool is_kept_for_heavy = !core.has_heavy && cpu == *for_heavy;
    const std::size_t without_conflict = is_kept_for_heavy ? kAloneLevel : kPairedLevel;
    add_cpu(levels, heavy_containers_[cpu] > 0 ? conflict_level(0) : without_conflict, cpu);
  }
}

void Pairing::rank(const CoreThreads& core, std::vector<Level>& levels) const {
  if (profile_ == Profile::kUnknown) return rank_for_unknown(core.cpus, core.has_heavy, levels);
  if (profile_ == Profile::kHeavy) return rank_for_heavy(core, levels);
  return exclusive_ ? rank_for_light_exclusive(core, levels) : rank_for_light_shared(core, levels);
}

std::vector<Level> Pairing::levels(topolet_set usable) const {
  std::vector<std::vector<std::uint32_t>> by_core(cores_.core_count());
  sdk::for_each_index(usable, [&](std::uint32_t cpu) {
    if (cores_.core_of(cpu) != TOPOLET_NONE) by_core[cores_.core_of(cpu)].push_back(cpu);
  });
  std::vector<Level> levels;
  for (std::uint32_t i = 0; i < by_core.size(); ++i) {
    if (by_core[i].empty()) continue;
    CoreThreads core{std::move(by_core[i]), 0, heavy_cpus_[i] > 0, false, cores_.threads_of(i) == 1};
    for (const std::uint32_t cpu : core.cpus) core.heavy_cpus += heavy_containers_[cpu] > 0 ? 1U : 0U;
    core.has_heavy_on_unusable = heavy_cpus_[i] > core.heavy_cpus;
    rank(core, levels);
  }
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i].neighbours = neighbours_at(i);
  levels.erase(std::remove_if(levels.begin(), levels.end(), [](const Level& level) { return level.cpus.empty(); }),
               levels.end());
  return levels;
}

Set Pairing::cpus_to_choose_from(topolet_set usable, std::size_t wanted) const {
  Set chosen;
  std::size_t count = 0;
  for (const Level& level : levels(usable)) {
    const std::size_t more = level.cpus.size();
    if (count == 0 || !exclusive_ || count + more <= wanted) {
      chosen |= level.cpus;
      count += more;
    } else {
      sdk::for_each_index(level.cpus.view(), [&](std::uint32_t cpu) {
        if (count == wanted) return;
        chosen.insert(cpu);
        ++count;
      });
    }
    if (count >= wanted) break;
  }
  return chosen;
}

bool Pairing::competes_with(const topolet_ledger_entry& entry, Profile profile) const {
  return shares_cpus(entry) && (profile_ == Profile::kUnknown ? profile != Profile::kHeavy : profile == profile_);
}

std::size_t Pairing::shared_cpus_requested(topolet_set usable, const topolet_demand* demand) const {
  std::int64_t milli = milli_of(demand);
  for (const Sharers& sharers : sharers_) {
    const auto here = static_cast<std::int64_t>(sdk::size_of_both(sharers.cpus, usable));
    if (here == 0) continue;
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): they have at least the CPUs that are here
    const std::int64_t each = sharers.request_milli * here / static_cast<std::int64_t>(sdk::size_of(sharers.cpus));
    milli += sharers.containers * each;
  }
  return static_cast<std::size_t>(std::max<std::int64_t>(1, (milli + 999) / 1000));
}

NeighbourCounts count_neighbours(const std::vector<Level>& levels, topolet_set free, std::size_t wanted) {
  NeighbourCounts counts{};
  for (const Level& level : levels) {
    const std::size_t taken = std::min(wanted, sdk::size_of_both(level.cpus.view(), free));
    counts[static_cast<std::size_t>(level.neighbours)] += taken;
    wanted -= taken;
  }
  return counts;
}

}  // namespace topolet::smt
