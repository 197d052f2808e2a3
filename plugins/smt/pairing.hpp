// Choice of CPUs for heavy and light containers: one heavy container on each core, light ones on the sibling threads,
// and containers of which nothing is known on other cores.
#pragma once

#include <topolet/policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/smt/demand.hpp"

namespace topolet::smt {

/// The other containers on the core of a CPU, as they matter to the container that is to be placed there; the best
/// first.
enum class Neighbours : std::uint8_t {
  kPaired,      ///< heavy: no other heavy container; light: a heavy one, or, if it shares CPUs, room for one
  kAlone,       ///< light, or nothing is known: no heavy container
  kOwnSibling,  ///< the container itself, on a sibling thread
  kConflict,    ///< heavy: another heavy container; light: one that shares the very same CPU; nothing is known: a heavy
                ///< one
};

/// CPUs that suit the container equally well.
struct Level {
  sdk::Set cpus;
  Neighbours neighbours = Neighbours::kPaired;
};

/// How many CPUs of a container have which neighbours, by Neighbours.
using NeighbourCounts = std::array<std::size_t, 4>;

/// Ranks CPUs by the heavy and light containers that run on their cores. Heavy containers that share CPUs are all kept
/// to the same thread of each core, where they take turns instead of running on sibling threads at the same time.
class Pairing {
 public:
  /// `demand` must be that of a heavy or light container, or of one that avoids heavy ones. Borrows the cores and the
  /// ledger.
  Pairing(const sdk::CoreMap& cores, const topolet_ledger& ledger, const Profiles& profiles, const Demand& demand);

  /// All `usable` CPUs, the best level first. For a heavy or light exclusive container a level has at most one CPU of
  /// each core.
  std::vector<Level> levels(topolet_set usable) const;
  /// The part of `usable` to choose `wanted` CPUs from: the best level, and while these are too few the next; of
  /// further levels an exclusive container gets only as many CPUs as it still needs.
  sdk::Set cpus_to_choose_from(topolet_set usable, std::size_t wanted) const;
  /// How many of the `usable` CPUs this container and all others of its profile that share CPUs request together; if
  /// its profile is unknown, all that are not heavy. At least 1.
  std::size_t shared_cpus_requested(topolet_set usable, const topolet_demand* demand) const;

 private:
  struct CoreThreads;
  /// Containers of the same profile that share the same CPUs and request equally much.
  struct Sharers {
    topolet_set cpus{};
    std::int64_t request_milli = 0;
    std::int64_t containers = 0;
  };
  void add_sharer(const topolet_ledger_entry& entry);
  void rank(const CoreThreads& core, std::vector<Level>& levels) const;
  bool competes_with(const topolet_ledger_entry& entry, Profile profile) const;
  bool is_disturbed_by(const LoadProfile& other) const;
  void rank_for_heavy(CoreThreads core, std::vector<Level>& levels) const;
  void rank_for_light_exclusive(CoreThreads core, std::vector<Level>& levels) const;
  void rank_for_light_shared(CoreThreads core, std::vector<Level>& levels) const;
  bool suits_heavy_better(std::uint32_t a, std::uint32_t b) const;

  const sdk::CoreMap& cores_;
  Profile profile_;
  Hours busy_hours_;
  bool exclusive_;
  std::vector<std::uint32_t> heavy_containers_;         ///< how many, by CPU
  std::vector<std::uint32_t> light_shared_containers_;  ///< how many, by CPU
  std::vector<std::uint32_t> heavy_cpus_;               ///< CPUs with a heavy container, by core
  std::vector<Sharers> sharers_;
};

/// The neighbours of the best `wanted` CPUs that are `free`.
NeighbourCounts count_neighbours(const std::vector<Level>& levels, topolet_set free, std::size_t wanted);

}  // namespace topolet::smt
