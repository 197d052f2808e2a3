// Everything that is kept for one container and decides what becomes of it. Plain values.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/operations/container.hpp"
#include "core/placement/placement.hpp"
#include "core/placement/unified_value.hpp"
#include "core/placement/workload.hpp"

namespace topolet::engine {

enum class Phase : std::uint8_t {
  kPending,   ///< decided; its create is on the way or about to be
  kInDoubt,   ///< its create ended, and nobody knows whether the runtime has the container
  kCreated,   ///< the runtime has it, and it was not started
  kStarting,  ///< a start went out: it may run
  kRunning,
  kCrashed,  ///< it failed; its CPUs are kept for its next attempt
  kKept,     ///< it ended otherwise; they are kept as well
};

/// "pending", "in_doubt", "created", "starting", "running", "crashed", "kept"
std::string_view to_string(Phase phase);
std::optional<Phase> phase_from(std::string_view name);

/// The outcome for a running container when CPUs went and it could not be placed as it should be.
enum class Squeeze : std::uint8_t {
  kNone,
  kPlaced,        ///< where a policy rejects it, or on fewer CPUs of its own than it was given, or on none
  kLeftToKernel,  ///< none of its CPUs may be used, and there are no others for it: it runs where the kernel lets it
};

std::string_view to_string(Squeeze squeeze);  // "", "placed", "left-to-kernel"

/// The party that decides its CFS quota.
enum class QuotaState : std::uint8_t {
  kAsAsked,    ///< the kubelet's: topolet tells the runtime nothing of it
  kDropped,    ///< it has CPUs of its own, and no quota
  kGivenBack,  ///< it had none, and is to have what the kubelet asks for
};

std::string_view to_string(QuotaState quota);  // "", "dropped", "given-back"

/// It does not leave CPUs that it was told to leave: the runtime refuses that, or does not answer.
struct Stuck {
  CpuSet cpus;                             ///< nobody else is given any of them alone
  std::string why;                         ///< the runtime's words
  std::chrono::milliseconds since{};       ///< wall clock
  std::chrono::milliseconds next_trial{};  ///< wall clock: when it is tried whether it can be moved by now
  std::uint32_t trials = 0;                ///< in vain

  friend bool operator==(const Stuck&, const Stuck&) = default;
};

/// The time until the first trial. Each failed one doubles it, up to the longest.
constexpr std::chrono::minutes kFirstTrial{1};
constexpr std::chrono::minutes kLongestTrial{10};

/// Another hand than topolet's sets its CPUs: what the kernel showed was not what topolet had told, although the
/// runtime had taken it.
struct Overruled {
  std::chrono::milliseconds since{};       ///< wall clock
  std::chrono::milliseconds ours_since{};  ///< wall clock: since when the kernel shows topolet's again; 0: it does not
  CpuSet cpus = {};                        ///< where the other hand has put it last
  std::string plugin = {};                 ///< the runtime's plugin that does it; empty: it is not known who does

  friend bool operator==(const Overruled&, const Overruled&) = default;
};

/// It was seen on CPUs where nothing but another hand can have put it, and they were repaired. Once is somebody's
/// mistake; whoever does it again overrules topolet.
struct Hand {
  std::chrono::milliseconds repaired_at{};  ///< wall clock: when a repair took effect last
  std::uint32_t repairs = 0;                ///< so far, with less than a day between each and the next

  friend bool operator==(const Hand&, const Hand&) = default;
};

/// Whoever does it again so soon after a repair overrules topolet; and whoever has done it twice before, within a day.
constexpr std::chrono::minutes kHandComesAgain{10};
constexpr std::chrono::hours kHandForgotten{24};

/// Who has a container moved that could have stayed where it was.
enum class MoveCause : std::uint8_t {
  kHeal,    ///< it is in a better place now
  kRoom,    ///< another container is
  kCrowd,   ///< more was requested of its CPUs than they are
  kReturn,  ///< it is where it had been before it was displaced
  kPlugin,  ///< a plugin wished it
};

std::string_view to_string(MoveCause cause);  // "heal", "room", "crowd", "return", "plugin"

/// The newest move of a container that could have stayed where it was.
struct LastMove {
  std::chrono::milliseconds at{};  ///< wall clock
  MoveCause cause = MoveCause::kHeal;

  friend bool operator==(const LastMove&, const LastMove&) = default;
};

/// For so long nobody moves it again, unless it must.
constexpr std::chrono::minutes kBetweenMovesOfOne{10};

/// CPUs beside its home on which a container that shares CPUs may run as well, while more is used of its home than that
/// is. It stays when it has ended, as a container is not changed again at once.
struct Widening {
  CpuSet cpus;                             ///< outside `within`; empty: it has its home only
  std::chrono::milliseconds at{};          ///< wall clock: of the newest change
  std::uint32_t use_permille = 0;          ///< of its home, when it was widened: it is not narrowed before less is used
  std::chrono::milliseconds not_before{};  ///< wall clock: it is not widened before that
  friend bool operator==(const Widening&, const Widening&) = default;
};

/// For so long nothing is changed about how far a container is widened.
constexpr std::chrono::seconds kBetweenWidenings{10};

/// For so long the kernel has to show topolet's CPUs before a container is not overruled any more.
constexpr std::chrono::minutes kOverruledLinger{1};

/// The placement that a container had to leave, in whole or in part, and returns to when it can.
struct Preferred {
  placement::Placement placement;  ///< mode, CPUs and what was withheld
  CpuSet within;                   ///< as in Allocation
  NodeSet nodes;
  bool waits_for_all = false;  ///< shared: it does not go back before all of `within` is allowed again
  bool is_due = false;  ///< shared: CPUs of `within` have become free, but it had been moved too short a time before

  friend bool operator==(const Preferred&, const Preferred&) = default;
};

/// Where a container was before a move that it could have done without, until it has left: it goes back there if it
/// does not.
struct MovedFrom {
  placement::Placement placement;  ///< without what was added at its creation
  NodeSet mems_to_keep;            ///< as in Allocation, as is all that follows up to `unified`
  CpuSet within;
  NodeSet nodes;
  std::string reason;
  std::optional<Preferred> preferred;
  CpuSet arrived_cpus;
  CpuSet evaluated_cpus;
  bool restricted = false;
  Squeeze squeeze = Squeeze::kNone;
  SharedStringMap unified;
  SharedStringMap tags;                             ///< as in Workload
  std::optional<placement::Demand> demand;          ///< of one that others make room for, as it is resized
  std::optional<placement::ContainerKey> newcomer;  ///< for whom it makes room

  friend bool operator==(const MovedFrom&, const MovedFrom&) = default;
};

/// A container is told "max" in the place of the memory.high that it had.
constexpr std::int64_t kMemoryHighLifted = -1;

/// Stored whole: codec.hpp lists every field. It changes by transitions only.
struct Allocation {
  placement::Workload workload;    ///< without `env`
  placement::Placement placement;  ///< what it is to have
  CpuSet within;                   ///< shared, reserved: the CPUs it may use when they are in the pool
  /// CPUs that it must leave and may still be running on. A container that got one of them exclusively waits for that.
  CpuSet vacating;
  CpuSet vacating_alone;  ///< of these, those it had alone: nobody's until it has left
  bool conflict = false;  ///< the kubelet's CPUs overlap those of others, and were applied anyway
  Phase phase = Phase::kPending;
  std::chrono::milliseconds phase_since{};  ///< wall clock
  std::chrono::milliseconds doubt_since{};  ///< wall clock, of the first doubt; a refused retry does not renew it
  bool stopping = false;                    ///< the kubelet is stopping it, or has: its exit is not a failure
  std::string container_id;                 ///< while it is pending: that it is to have; empty where nobody has told
  std::uint64_t generation = 0;             ///< of its newest change
  std::int64_t decision = 0;                ///< the number in the audit of the decision that it is held by
  std::string reason;                       ///< why it is where it is, for people
  std::optional<Preferred> preferred;
  CpuSet arrived_cpus;      ///< exclusive: CPUs that came online or were allowed since it was placed
  CpuSet evaluated_cpus;    ///< shared: the CPUs it had when the policies were last asked about it
  bool restricted = false;  ///< shared: it was given less than a candidate, and does not grow with one
  NodeSet nodes;            ///< of its CPUs when it got them; kept when all CPUs of a node go
  Squeeze squeeze = Squeeze::kNone;
  CpuSet seen_on;     ///< where the kernel was seen to have it, while that is not where it should be
  CpuSet overlapped;  ///< exclusive: those of its CPUs on which others were seen that should not be there
  std::optional<Overruled> overruled;
  std::optional<Hand> hand;
  std::optional<Stuck> stuck;
  QuotaState quota = QuotaState::kAsAsked;
  SharedStringMap unified;  ///< the files of its cgroup v2 that policies have set
  bool adopted = false;     ///< it was found: topolet did not see its creation
  /// It runs on the whole pool: its CPUs, and those of the pool that it may not have left yet, are stored once for all
  /// of its kind. Draft::finish() sets it.
  bool shares_pool_row = false;
  NodeSet mems_to_keep;  ///< of its memory nodes, once its memory has left the others; empty: all of them
  std::optional<LastMove> last_move;
  std::optional<Widening> widening;  ///< shared
  std::optional<MovedFrom> moved_from;
  CpuSet narrowed_to;  ///< of one that yields(): the CPUs that all of these are narrowed to; empty: they are not
  /// The memory.high, in bytes, that it has as one of the BestEffort containers that share what is left over of the
  /// machine's memory; kMemoryHighLifted: it has had one; 0: it never had. A plugin's comes before it.
  std::int64_t memory_high = 0;

  bool is_exclusive() const { return placement.mode == placement::Mode::kExclusive; }
  /// It had to leave CPUs of its own, and returns to them when it can.
  bool was_exclusive() const { return preferred && preferred->placement.mode == placement::Mode::kExclusive; }
  bool follows_pool() const { return placement::follows_pool(placement.mode); }
  /// It has the CPUs of `pool`, and of those that it may be leaving none but `left`.
  bool runs_on_whole_pool(const CpuSet& pool, const CpuSet& left) const {
    return placement.mode == placement::Mode::kShared && is_managed() && !conflict && placement.cpus == pool &&
           vacating.is_subset_of(left) && vacating_alone.empty();
  }
  /// It follows the pool, and topolet says where in the pool it runs, not the kubelet.
  bool is_movable_in_pool() const { return follows_pool() && !conflict && !stays_within(); }
  /// Topolet does not move it out of `within`: the kubelet has said where it runs, or nobody tells what it is.
  bool stays_within() const { return !workload.kubelet_cpus.empty() || placement::is_unknown(workload); }
  /// It has ended, and what it held is kept for its next attempt, unless others need it.
  bool is_kept() const { return phase == Phase::kCrashed || phase == Phase::kKept; }
  /// The runtime has the container.
  bool is_bound() const { return phase == Phase::kCreated || may_run(); }
  /// Nobody knows yet whether the runtime has made it.
  bool is_pending() const { return phase == Phase::kPending || phase == Phase::kInDoubt; }
  /// Returns the id of the container that it is about: while it is pending, the runtime has told none.
  std::string id_in_runtime() const { return is_pending() ? std::string() : container_id; }
  bool has_run() const { return phase == Phase::kRunning || is_kept(); }
  bool may_run() const { return phase == Phase::kStarting || phase == Phase::kRunning; }
  /// Its CPUs are topolet's to set.
  bool is_managed() const { return is_bound() && placement.mode != placement::Mode::kForeign; }
  /// Returns the memory nodes that it is to have in the end.
  const NodeSet& intended_mems() const { return mems_to_keep.empty() ? placement.mems : mems_to_keep; }
  /// Returns the CPUs that nobody else may run on.
  CpuSet dedicated_cpus() const { return is_exclusive() ? placement.cpus | placement.withheld : placement.withheld; }
  /// It runs in the pool on what is left over: it requests nothing, nothing ties it to a node, and nobody but topolet
  /// says where it runs.
  bool yields() const {
    const bool is_tied = !workload.used_devices.empty() || !workload.devices.empty() || !workload.cdi_devices.empty() ||
                         !placement.mems.empty() || !workload.kubelet_mems.empty();
    return workload.qos == placement::Qos::kBestEffort && placement.mode == placement::Mode::kShared &&
           is_movable_in_pool() && !overruled && !is_tied;
  }
  /// It shares what is left over of the machine's memory: it requests none, and nobody but topolet bounds it. What the
  /// request of a container that was found has set is not known, so that a memory.high of an earlier topoletd is
  /// lifted.
  bool shares_memory() const {
    return workload.qos == placement::Qos::kBestEffort && is_managed() && !adopted &&
           workload.kubelet_unified.count(std::string(placement::kMemoryHigh)) == 0;
  }
  /// It may run on CPUs beside its home.
  bool is_widened() const { return widening && !widening->cpus.empty(); }
  /// Returns the CPUs of its home, which is all that it has unless it is widened.
  CpuSet home_cpus() const { return is_widened() ? placement.cpus - (widening->cpus - within) : placement.cpus; }
  /// Returns all CPUs that it may use when they are in the pool.
  CpuSet reach() const { return is_widened() ? within | widening->cpus : within; }
  /// Returns the CPUs on which it stays whatever it is told: nobody else is given these alone.
  CpuSet barred_cpus() const;
  /// The CPUs kept idle for it, and the exclusive ones that it has not left yet.
  CpuSet effective_withheld() const { return placement.withheld | vacating_alone; }

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// Returns true if it was moved so short a time ago that it is left alone, unless it must move. `now`: wall clock. A
/// clock that was set back does not hold a container for longer than kBetweenMovesOfOne.
bool was_just_moved(const Allocation& allocation, std::chrono::milliseconds now);

/// Returns where the container is, for a move that may be taken back.
MovedFrom place_of(const Allocation& allocation);
/// Has the container there again. Its demand and its tags stay as they are.
void put_back(const MovedFrom& place, Allocation& allocation);

/// Returns the mode that was observed: "exclusive" only if it has its CPUs for itself. If it was given them so and that
/// is not true now, it is "overruled", "drifted" (it runs elsewhere), or "overlapped" (others run there); otherwise the
/// name of its mode.
std::string_view seen_mode(const Allocation& allocation);

/// The CPUs that an attempt of a container had for itself when it ended.
struct FormerCpus {
  CpuSet cpus;
  CpuSet withheld;

  friend bool operator==(const FormerCpus&, const FormerCpus&) = default;
};

/// A container of whole CPUs that shared, as there were none for it alone, and has ended: its next attempt comes before
/// others.
struct Waiting {
  std::uint32_t cpus = 0;
  std::chrono::milliseconds since{};  ///< wall clock

  friend bool operator==(const Waiting&, const Waiting&) = default;
};

/// A denial that was audited; the same again is only counted.
struct Denial {
  std::uint32_t attempt = 0;
  std::string reason;
  std::int64_t decision = 0;

  friend bool operator==(const Denial&, const Denial&) = default;
};

/// The record of one pod sandbox. Stored whole, as an allocation is.
struct Pod {
  operations::Sandbox sandbox;
  NodeSet nodes;  ///< of the candidate that its first container was given; empty until decided
  std::map<std::string, FormerCpus> former;  ///< by container name
  std::map<std::string, Denial> denied;      ///< by container name
  std::map<std::string, Waiting> waiting;    ///< by container name
  std::vector<std::string> warned;           ///< what was logged of it, once each
  /// Its containers by name, in the order in which they were first created; empty while there was one only. An init
  /// container has ended before the next one is created.
  std::vector<std::string> made;
  /// Its cgroup is kept within the pool, or may be: it was set to that.
  bool confined = false;
  /// The CFS quota of its cgroup before topolet set none; none where topolet has not.
  std::optional<operations::CfsQuota> dropped_quota;

  bool was_warned(const std::string& warning) const {
    return std::find(warned.begin(), warned.end(), warning) != warned.end();
  }
  /// True if there are new ones among them.
  bool add_warnings(const std::vector<std::string>& warnings);

  friend bool operator==(const Pod&, const Pod&) = default;
};

/// Removes the parts that are never kept: the environment, and annotations that repeat it.
void drop_secrets(placement::Workload& workload);
void drop_secrets(Pod& pod);

}  // namespace topolet::engine
