// Heavy containers one to a core, light ones beside them.
#pragma once

#include <topolet/policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/smt/cores.hpp"
#include "plugins/smt/wish.hpp"

namespace topolet::smt {

/// What it means for a container to run on a CPU, from the best to the worst.
enum class Terms : std::uint8_t {
  kPaired,  ///< heavy: with no other heavy one on the core; light: beside a heavy one, or where one would leave room
  kAlone,   ///< light: on a core without a heavy one
  kOwn,     ///< beside a CPU that it has already
  kMeets,   ///< heavy: beside another heavy one; light: on the very CPU that a heavy one shares
};

struct Level {
  sdk::Set cpus;
  Terms terms = Terms::kPaired;
};

/// How many of a container's CPUs are to be had on which terms.
using Tally = std::array<std::size_t, 4>;

/// Where heavy containers run, and so which CPUs suit one container more. Heavy containers that share CPUs are all kept
/// to the same one thread of each core: there they take turns and never meet.
class Pairing {
 public:
  /// `wish`: of a container that is heavy or light. Borrows the cores and the ledger.
  Pairing(const Cores& cores, const topolet_ledger& ledger, const Wish& wish);

  /// All of `usable`, from the best to the worst. Of an exclusive container one CPU of a core in each level.
  std::vector<Level> levels(topolet_set usable) const;
  /// The part of `usable` to narrow to: all that are best if there are `wanted` of them, else these and some, if
  /// exclusive as few as needed, of the next.
  sdk::Set choice(topolet_set usable, std::size_t wanted) const;
  /// CPUs that the container and others of its profile ask for in `usable`, if they share them.
  std::size_t asked_for(topolet_set usable, const topolet_demand* demand) const;

 private:
  struct CoreThreads;
  void place(const CoreThreads& core, std::vector<Level>& levels) const;
  void place_heavy(CoreThreads core, std::vector<Level>& levels) const;
  void place_light_exclusive(CoreThreads core, std::vector<Level>& levels) const;
  void place_light_shared(CoreThreads core, std::vector<Level>& levels) const;
  bool leaves_room_first(std::uint32_t a, std::uint32_t b) const;

  const Cores& cores_;
  const topolet_ledger& ledger_;
  Profile profile_;
  bool exclusive_;
  std::vector<std::uint32_t> heavies_;   ///< heavy containers, by CPU
  std::vector<std::uint32_t> lights_;    ///< light ones that share, by CPU
  std::vector<std::uint32_t> strained_;  ///< CPUs with a heavy container, by core
};

/// What `wanted` CPUs among `free` would be.
Tally tally_of(const std::vector<Level>& levels, topolet_set free, std::size_t wanted);

}  // namespace topolet::smt
