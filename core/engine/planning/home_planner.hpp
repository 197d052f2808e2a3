// Containers that share CPUs of which more is used than they are, and what other NUMA nodes have to spare. Plans only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/load/load.hpp"

namespace topolet::engine {

/// For so long a home must be pressed before a container is widened, and relaxed before it is narrowed again.
constexpr std::chrono::seconds kHomeMustLast{10};

/// The use of the homes of shared containers at one moment, in permille of what their CPUs can do. A home is the part
/// of the pool that a container was placed on. Containers that request no CPU do not count: they yield to all others.
class HomeUse {
 public:
  /// Of the ledger and what is measured. `ledger` and `topology` must outlive it.
  HomeUse(const Ledger& ledger, const topology::Topology& topology, const load::Load& load);

  /// A NUMA node with CPUs in the pool.
  struct Place {
    std::uint32_t node = 0;  ///< OS index
    CpuSet cpus;             ///< in the pool
    std::int64_t capacity_milli = 0;
    std::int64_t own_milli = 0;  ///< used by the containers whose home it is, wherever they run
    bool is_known = true;        ///< what each of these uses
    bool waits = false;          ///< one of these waits for CPUs, by its pressure
    bool borrows = false;        ///< one of these is widened
    CpuSet lent;                 ///< what containers of other homes are widened by

    /// Returns how many CPUs its own containers can do without, with something to spare.
    std::size_t most_lent() const;
    /// Returns true if its own containers use nearly all of what it has not lent.
    bool uses_the_rest() const;
    /// Returns how many of the CPUs that it has lent it may do without for longer. Until its own use has grown clearly
    /// those are all.
    std::size_t still_lent() const;
    /// Returns `count` of its CPUs to lend: those that are lent already first, then whole cores from the end.
    CpuSet cpus_to_lend(std::size_t count, const topology::Topology& topology) const;
  };
  const std::vector<Place>& places() const { return places_; }

  /// The home of one container.
  struct Home {
    std::int64_t use_permille = 0;    ///< all that is used by those whose home it is, of its capacity
    std::int64_t reach_permille = 0;  ///< the same, of its capacity and of what they are widened by
    bool is_known = false;
    bool waits = false;             ///< this container waits for CPUs, by its pressure
    bool is_at_quota = false;       ///< it uses all that its own CFS quota lets it use
    std::int64_t used_milli = 0;    ///< by this container
    std::int64_t beyond_milli = 0;  ///< how much more this container uses than it requests; negative: less

    bool is_pressed() const;
    /// `widened_at`: use_permille when it was widened.
    bool is_relaxed(std::uint32_t widened_at) const;
  };
  /// Returns nothing for a container that shares no CPUs, or requests none.
  const Home* home_of(const placement::ContainerKey& key) const;

 private:
  void add_places(const Ledger& ledger, const topology::Topology& topology, const load::Load& load);
  void add_container(const Allocation& allocation, const load::Load& load);
  void add_lent(const Allocation& allocation);
  void finish(const Ledger& ledger);

  std::vector<Place> places_;
  std::map<placement::ContainerKey, Home> homes_;
};

/// Plans for the current state of `ledger` and `placer`, which must outlive it.
///
/// Nothing goes back and forth while containers need the same. A container is widened while its home is pressed, and
/// narrowed when clearly less is used of its home than when it was widened, wherever its containers run: that they run
/// elsewhere does not relax it. A node lends what its own containers would not use if they used a quarter more, and
/// takes back when they use nine tenths of the rest; where it takes back because they wait although they use less, it
/// does not lend to the same container again soon.
class HomePlanner {
 public:
  HomePlanner(const Ledger& ledger, const Placer& placer) : ledger_(ledger), placer_(placer) {}

  /// How long things have been as they are, by container or node.
  struct Lasting {
    std::map<placement::ContainerKey, std::chrono::steady_clock::time_point> pressed = {};
    std::map<placement::ContainerKey, std::chrono::steady_clock::time_point> relaxed = {};
    std::map<placement::ContainerKey, std::chrono::steady_clock::time_point> unknown = {};
    std::map<std::uint32_t, std::chrono::steady_clock::time_point> unknown_nodes = {};

    /// Takes note of what is so at `now`, and forgets what is not. While it is not known for a moment, as a container
    /// has just started, all goes on as before.
    void note(const Ledger& ledger, const HomeUse& use, std::chrono::steady_clock::time_point now);
  };

  using Change = event::HomesWidened::Change;
  struct Times {
    std::chrono::steady_clock::time_point steady;
    std::chrono::milliseconds wall;
  };

  /// Returns the changes of those that are widened and are not to be as far any more.
  std::vector<Change> narrowed(const HomeUse& use, const Lasting& lasting, const Times& now) const;
  /// Returns containers whose homes have been pressed for long enough, and what they could be widened to: those that
  /// use most beyond their requests first. No policy is asked.
  std::vector<Change> widened(const HomeUse& use, const Lasting& lasting, const Times& now) const;

  /// Returns whether policies let the container run beside its home; nothing if one of them lost its vote.
  std::optional<bool> is_soft(const Allocation& allocation) const;
  /// Returns the change that takes from a container all that it is widened by.
  static Change narrowing(const Allocation& allocation, std::string why, const char* code);

 private:
  std::optional<Change> narrowed(const Allocation& allocation, const HomeUse& use, const Lasting& lasting,
                                 const Times& now) const;
  std::optional<Change> with_spare_taken_back(const Allocation& allocation, const HomeUse& use, const Lasting& lasting,
                                              const Times& now) const;
  std::optional<Change> widened(const Allocation& allocation, const HomeUse& use) const;

  const Ledger& ledger_;
  const Placer& placer_;
};

/// Returns true if nothing but its policies speaks against widening the container: it is at rest and shares CPUs that
/// topolet chose, its memory is not bound, and it has no devices.
bool may_be_widened(const Allocation& allocation);

/// Returns true if it was widened or narrowed less than kBetweenWidenings ago. `now`: wall clock.
bool was_just_widened(const Allocation& allocation, std::chrono::milliseconds now);

}  // namespace topolet::engine
