// Tells the hand of somebody else, who sets the CPUs of a container, from a runtime that is slow or loses an update.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/index_set.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/footprints.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// So often, at most, the CPUs of a container that is overruled are set again.
constexpr std::chrono::seconds kPauseBetweenRepairs{10};

/// Commits where the kernel has containers, as far as that is worth a transition, and which ones are overruled:
///
///  - a container that is, at the first check after its start, on CPUs that it was never told;
///  - one that is on such CPUs once more after a repair that took effect: within ten minutes, or for the third time in
///  a
///    day (Allocation::hand);
///  - one that is still elsewhere a second after the runtime has taken its CPUs, and was told them again meanwhile.
///
/// A difference that a change of the machine's CPUs may explain is none of these: its own cgroup's setting, where it
/// can be read, tells that from another hand, since the kernel does not write it. So does a cgroup that was set to
/// fewer CPUs than it was told, which an update that was lost does not explain, nor the cgroup above. The transition
/// (event::SeenInKernel) says how long it lasts. Lives on the loop's thread.
class OverruleWatch {
 public:
  struct Deps {
    Committer& committer;
    const CpusetWriter& cpusets;
    const Footprints& footprints;
    Clock clock;
  };
  enum class Check : std::uint8_t {
    kFirst,   ///< since it was started
    kUnseen,  ///< the same, and nobody knows what the machine's CPUs have been meanwhile
    kLater,
  };

  explicit OverruleWatch(Deps deps) : deps_(std::move(deps)) {}

  /// The kernel has it on `observed`, while it should be within `wanted`.
  void note_seen(const std::string& container_id, const CpuSet& observed, const CpuSet& wanted);
  /// The same where it is not within that, and nothing that was sent explains it. True if it is overruled.
  bool note_stray(const std::string& container_id, const CpuSet& observed, Check check);

  /// Another hand has set its cgroup to fewer CPUs than `target`, which were in force.
  bool is_narrowed(const std::string& container_id, const ContainerCpuset& target) const;

  /// Its cgroup has been told so: by a create, or in somebody else's turn.
  void note_sent(const std::string& container_id, const CpuSet& cpus);
  /// Returns the time to wait before it is told `target`; none: no time.
  std::optional<std::chrono::milliseconds> wait_before_repair(const Allocation& allocation,
                                                              const ContainerCpuset& target) const;
  /// It is told that now.
  void note_told(const Allocation& allocation, const ContainerCpuset& target);
  /// The runtime has taken it, and so has the kernel.
  void note_in_force(const std::string& container_id, const ContainerCpuset& target);
  /// The runtime has taken it, and the kernel has the container on `observed`.
  void note_elsewhere(const std::string& container_id, const ContainerCpuset& target, const CpuSet& observed);

  void forget(const std::string& container_id) { told_.erase(container_id); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  /// The values that differ if the machine's CPUs have changed.
  struct MachineMark {
    CpuSet allowed;
    std::uint64_t generation = 0;

    friend bool operator==(const MachineMark&, const MachineMark&) = default;
  };
  struct Told {
    ContainerCpuset target;
    Time at{};
    bool is_repair = false;               ///< it had been seen elsewhere
    std::optional<Time> elsewhere_since;  ///< the runtime had taken `target` by then
    std::optional<Time> repaired;         ///< when a repair took effect last
    bool was_put = false;                 ///< nothing but another hand explains where it was seen last
    bool is_forgiven = false;             ///< the machine's CPUs have changed since it was seen elsewhere
    MachineMark machine;                  ///< then
    std::vector<CpuSet> sent = {};        ///< the sets it was told last, the newest at the end
  };
  /// The possible cause of where it is.
  enum class Doing : std::uint8_t {
    kExplained,    ///< by what it was told, or the kernel's own
    kMaybeKernel,  ///< it was never told that, and the kernel does such things
    kUnexplained,  ///< it was never told that
    kAnotherHand,  ///< its cgroup was set to something that it was never told
  };

  MachineMark machine() const;
  Doing doing_of(const Allocation& allocation, const CpuSet& observed) const;
  bool has_come_again(const Allocation& allocation, Doing doing) const;
  bool was_told(const Allocation& allocation, const CpuSet& configured) const;
  bool was_never_told(const Allocation& allocation, const CpuSet& observed) const;
  bool may_be_the_kernels(const CpuSet& told, const CpuSet& observed) const;
  void commit_seen(const Allocation& allocation, const CpuSet& observed, bool is_ours, bool is_overruled);
  void commit_repaired(const std::string& container_id, const CpuSet& cpus);

  Deps deps_;
  std::map<std::string, Told> told_;  ///< by container
};

}  // namespace topolet::engine
