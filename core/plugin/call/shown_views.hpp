// Keeps the data that plugins are shown in decisions and ticks from one to the next.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/placement/policy.hpp"
#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/call/values_by_minor.hpp"

namespace topolet::plugin {

/// Those whom one piece of memory is lent to: one plugin, or all plugins that know the values of one minor version.
struct LentTo {
  std::string plugin;  ///< empty: all
  std::uint32_t minor = 0;

  friend auto operator<=>(const LentTo&, const LentTo&) = default;
};

/// Keeps the data that was shown last, to be shown again if nothing has changed: the topology changes rarely and is
/// large; a ledger is shown to all plugins, in all requests of a decision, and in later ones until it changes. Only
/// where a value occurs that is newer than the minor version of a plugin, that plugin is shown a view of its own.
///
/// Once memory that several plugins had been lent was written to, each is lent memory *apart* from the others' for as
/// long as the process lives: a thread of a plugin then knows no addresses but those of its own, and the next write can
/// be attributed to it. Safe from any thread.
class ViewCache {
 public:
  ViewCache(std::shared_ptr<Log> log, Clock clock);

  /// One that has no values but these.
  std::shared_ptr<const AbiTopology> topology(const std::shared_ptr<const topology::Topology>& topology,
                                              const KnownValues& known = {}) TOPOLET_EXCLUDES(mutex_);

  /// The last ledger, which from now on belongs to whoever asked: a call that is abandoned may write to it at any time,
  /// so that nobody else may be shown it. Null if there is none.
  std::shared_ptr<AbiLedger> take_ledger(const LentTo& whom) TOPOLET_EXCLUDES(mutex_);
  void give_back(const LentTo& whom, std::shared_ptr<AbiLedger> ledger) TOPOLET_EXCLUDES(mutex_);
  LentMemory memory(const LentTo& whom) TOPOLET_EXCLUDES(mutex_);

  bool lends_apart() const { return lends_apart_; }
  /// From now on. `why` is what was found.
  void lend_apart(const std::string& why) TOPOLET_EXCLUDES(mutex_);

  /// Checks that the topology is as it was made; if not, it is made anew.
  void check_topology() TOPOLET_EXCLUDES(mutex_);
  /// The same, but not more often than every ten seconds.
  void check_topology_now_and_then() TOPOLET_EXCLUDES(mutex_);

 private:
  const std::shared_ptr<Log> log_;
  const Clock clock_;
  std::atomic<bool> lends_apart_ = false;
  Mutex mutex_;
  /// One topology, by the minor whose values it shows.
  std::map<std::uint32_t, std::shared_ptr<const AbiTopology>> topologies_ TOPOLET_GUARDED_BY(mutex_);
  std::map<LentTo, std::shared_ptr<AbiLedger>> ledgers_ TOPOLET_GUARDED_BY(mutex_);
  std::map<LentTo, std::shared_ptr<LentPool>> pools_ TOPOLET_GUARDED_BY(mutex_);
  // Memory that a thread may still write to must stay mapped.
  std::vector<std::shared_ptr<AbiLedger>> old_ledgers_ TOPOLET_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const AbiTopology>> old_topologies_ TOPOLET_GUARDED_BY(mutex_);
  std::optional<std::chrono::steady_clock::time_point> topology_checked_at_ TOPOLET_GUARDED_BY(mutex_);
};

/// The data that plugins are shown in one attempt at a job. Not synchronised.
class ShownViews {
 public:
  explicit ShownViews(std::shared_ptr<ViewCache> cache) : cache_(std::move(cache)) {}

  ViewCache& cache() const { return *cache_; }

  // As a plugin sees it that knows these values: made at its first call and, unless they are lent memory apart, shared
  // by all to whom the same can be shown.

  const AbiRequest& request(const placement::PolicyRequest& request, const std::string& plugin,
                            const KnownValues& known = {});
  const AbiLedger& ledger(const placement::LedgerSnapshot& snapshot, const AbiTopology& topology,
                          const std::string& plugin, const KnownValues& known = {});

  /// Where memory is lent apart: whether this plugin has written to what it was lent before.
  bool were_written_by(const std::string& plugin, const KnownValues& known = {});
  /// Makes data that is no longer usable anew when it is shown next.
  void forget();

  /// At the end.
  void give_back();
  /// The same, where an abandoned call may still be inside.
  void retire();

 private:
  struct Shown {
    const placement::PolicyRequest* of = nullptr;  ///< nothing that may be shown again
    std::unique_ptr<AbiRequest> view;
    std::shared_ptr<AbiLedger> ledger;  ///< which is lent to nobody else
  };

  /// Returns what `make` makes: for all plugins, if this one knows all of its values, otherwise for those of its minor;
  /// where memory is lent apart, for this one.
  template <class Make>
  const auto& suitable(const std::string& plugin, const KnownValues& known, Make make);
  bool can_be_shared(const LentTo& whom);
  const AbiRequest& request_for(const LentTo& whom, const KnownValues& known, const placement::PolicyRequest& request);
  const AbiLedger& ledger_for(const LentTo& whom, const KnownValues& known, const placement::LedgerSnapshot& snapshot,
                              const AbiTopology& topology);
  std::shared_ptr<AbiLedger> updated(std::shared_ptr<AbiLedger> ledger, const placement::LedgerSnapshot& snapshot,
                                     const AbiTopology& topology, const LentMemory& memory,
                                     const KnownValues& known) const;

  const std::shared_ptr<ViewCache> cache_;
  std::map<LentTo, Shown> shown_;
};

}  // namespace topolet::plugin
