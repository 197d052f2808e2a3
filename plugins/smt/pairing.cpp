#include "plugins/smt/pairing.hpp"

#include <algorithm>

namespace topolet::smt {

using sdk::Set;

/// The usable threads of one core.
struct Pairing::CoreThreads {
  std::vector<std::uint32_t> cpus;
  std::size_t heavy = 0;  ///< those of them with a heavy container
  bool strained = false;  ///< a heavy container is on the core
  bool held = false;      ///< on one of its other threads, where it stays
  bool single = false;    ///< it has no other threads, and so suits heavy ones best
};

namespace {

/// Levels are kept in slots: paired, alone, alone where there are no siblings, second thread of a core, third, … and
/// the same threads for those that meet.
constexpr std::size_t kPairedLevel = 0;
constexpr std::size_t kAloneLevel = 1;
constexpr std::size_t kSingleLevel = 2;
constexpr std::size_t kDeepest = 64;

std::size_t own_level(std::size_t depth) { return kSingleLevel + std::min(depth, kDeepest); }
std::size_t meeting_level(std::size_t depth) { return own_level(kDeepest) + 1 + std::min(depth, kDeepest); }

Terms terms_of(std::size_t level) {
  if (level == kPairedLevel) return Terms::kPaired;
  if (level == kAloneLevel || level == kSingleLevel) return Terms::kAlone;
  return level < meeting_level(0) ? Terms::kOwn : Terms::kMeets;
}

void put(std::vector<Level>& levels, std::size_t at, std::uint32_t cpu) {
  if (levels.size() <= at) levels.resize(at + 1);
  levels[at].cpus.insert(cpu);
}

bool shares(const topolet_ledger_entry& entry) {
  return entry.mode == TOPOLET_MODE_SHARED || entry.mode == TOPOLET_MODE_RESERVED;
}

std::int64_t milli_of(const topolet_demand* demand) {
  return demand == nullptr ? 0 : std::max<std::int64_t>(0, demand->cpu_request_milli);
}

}  // namespace

Pairing::Pairing(const Cores& cores, const topolet_ledger& ledger, const Wish& wish)
    : cores_(cores),
      ledger_(ledger),
      profile_(wish.profile),
      exclusive_(wish.cpus > 0),
      heavies_(cores.cpus(), 0),
      lights_(cores.cpus(), 0),
      strained_(cores.count(), 0) {
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    const Profile profile = profile_of(entry.settings);
    const bool heavy = profile == Profile::kHeavy;
    if (entry.mode == TOPOLET_MODE_FOREIGN || profile == Profile::kUnknown || (!heavy && !shares(entry))) continue;
    for_each(entry.cpus, [&](std::uint32_t cpu) {
      const std::uint32_t core = cores_.core_of(cpu);
      if (core == TOPOLET_NONE) return;
      if (heavy && heavies_[cpu]++ == 0) ++strained_[core];
      if (!heavy) ++lights_[cpu];
    });
  }
}

/// The CPU of a core that heavy containers are to share: the one they have already, else one that light ones leave.
bool Pairing::leaves_room_first(std::uint32_t a, std::uint32_t b) const {
  if (heavies_[a] != heavies_[b]) return heavies_[a] > heavies_[b];
  return lights_[a] != lights_[b] ? lights_[a] < lights_[b] : a < b;
}

void Pairing::place_heavy(CoreThreads core, std::vector<Level>& levels) const {
  std::sort(core.cpus.begin(), core.cpus.end(), [this](auto a, auto b) { return leaves_room_first(a, b); });
  // An exclusive container drives away those that share the CPU it takes: only who has others there too is met.
  const bool meets = core.held || (exclusive_ && core.heavy > 1);
  for (std::size_t depth = 0; depth < core.cpus.size(); ++depth) {
    const std::size_t apart = depth == 0 ? kPairedLevel : own_level(depth);
    put(levels, meets ? meeting_level(depth) : apart, core.cpus[depth]);
  }
}

void Pairing::place_light_exclusive(CoreThreads core, std::vector<Level>& levels) const {
  std::sort(core.cpus.begin(), core.cpus.end(), [this](auto a, auto b) { return leaves_room_first(b, a); });
  for (std::size_t depth = 0; depth < core.cpus.size(); ++depth) {
    const std::uint32_t cpu = core.cpus[depth];
    const std::size_t alone = core.single ? kSingleLevel : kAloneLevel;
    const std::size_t first = core.strained ? kPairedLevel : alone;
    const std::size_t open = depth == 0 ? first : own_level(core.strained ? 1 : 2);
    put(levels, heavies_[cpu] > 0 ? meeting_level(0) : open, cpu);
  }
}

void Pairing::place_light_shared(CoreThreads core, std::vector<Level>& levels) const {
  const auto slot =
      std::min_element(core.cpus.begin(), core.cpus.end(), [this](auto a, auto b) { return leaves_room_first(a, b); });
  for (const std::uint32_t cpu : core.cpus) {
    const bool left = !core.strained && cpu == *slot;
    const std::size_t open = left ? kAloneLevel : kPairedLevel;
    put(levels, heavies_[cpu] > 0 ? meeting_level(0) : open, cpu);
  }
}

void Pairing::place(const CoreThreads& core, std::vector<Level>& levels) const {
  if (profile_ == Profile::kHeavy) return place_heavy(core, levels);
  return exclusive_ ? place_light_exclusive(core, levels) : place_light_shared(core, levels);
}

std::vector<Level> Pairing::levels(topolet_set usable) const {
  std::vector<std::vector<std::uint32_t>> by_core(cores_.count());
  for_each(usable, [&](std::uint32_t cpu) {
    if (cores_.core_of(cpu) != TOPOLET_NONE) by_core[cores_.core_of(cpu)].push_back(cpu);
  });
  std::vector<Level> levels;
  for (std::uint32_t i = 0; i < by_core.size(); ++i) {
    if (by_core[i].empty()) continue;
    CoreThreads core{std::move(by_core[i]), 0, strained_[i] > 0, false, cores_.threads_of(i) == 1};
    for (const std::uint32_t cpu : core.cpus) core.heavy += heavies_[cpu] > 0 ? 1U : 0U;
    core.held = strained_[i] > core.heavy;
    place(core, levels);
  }
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i].terms = terms_of(i);
  levels.erase(std::remove_if(levels.begin(), levels.end(), [](const Level& level) { return level.cpus.empty(); }),
               levels.end());
  return levels;
}

Set Pairing::choice(topolet_set usable, std::size_t wanted) const {
  Set chosen;
  std::size_t count = 0;
  for (const Level& level : levels(usable)) {
    const std::size_t more = level.cpus.size();
    if (count == 0 || !exclusive_ || count + more <= wanted) {
      chosen |= level.cpus;
      count += more;
    } else {
      for_each(level.cpus.view(), [&](std::uint32_t cpu) {
        if (count == wanted) return;
        chosen.insert(cpu);
        ++count;
      });
    }
    if (count >= wanted) break;
  }
  return chosen;
}

std::size_t Pairing::asked_for(topolet_set usable, const topolet_demand* demand) const {
  std::int64_t milli = milli_of(demand);
  for (const topolet_ledger_entry& entry : sdk::entries(ledger_)) {
    if (!shares(entry) || profile_of(entry.settings) != profile_) continue;
    const auto here = static_cast<std::int64_t>(sdk::size_of_both(entry.cpus, usable));
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): those that are here are among all
    if (here > 0) milli += milli_of(entry.demand) * here / static_cast<std::int64_t>(sdk::size_of(entry.cpus));
  }
  return static_cast<std::size_t>(std::max<std::int64_t>(1, (milli + 999) / 1000));
}

Tally tally_of(const std::vector<Level>& levels, topolet_set free, std::size_t wanted) {
  Tally tally{};
  for (const Level& level : levels) {
    const std::size_t taken = std::min(wanted, sdk::size_of_both(level.cpus.view(), free));
    tally[static_cast<std::size_t>(level.terms)] += taken;
    wanted -= taken;
  }
  return tally;
}

}  // namespace topolet::smt
