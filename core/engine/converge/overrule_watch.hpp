// Tells the hand of somebody else, who sets the CPUs of a container, from a runtime that is slow or loses an update.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/clock.hpp"
#include "core/base/index_set.hpp"
#include "core/engine/converge/footprints.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// So often, at most, the CPUs of a container that is overruled are set again.
constexpr std::chrono::seconds kPauseBetweenRepairs{10};

/// Commits where the kernel has containers, as far as that is worth a transition, and who is overruled:
///
/// - whoever is, at the first look after its start, on CPUs that it was never told;
/// - whoever is, within a minute after a repair that took effect, on such CPUs once more;
/// - whoever is still elsewhere a second after the runtime has taken its CPUs, and was told them again meanwhile.
///
/// A difference that a change of the machine's CPUs may explain is none of these. How long it lasts is said by the
/// transition (event::SeenInKernel). What is kept here is lost with the daemon; it only delays the next such finding.
/// Lives on the loop's thread.
class OverruleWatch {
 public:
  struct Deps {
    Committer& committer;
    const Footprints& footprints;
    Clock clock;
  };
  enum class Look : std::uint8_t { kFirst, kLater };  ///< kFirst: the first since it was started

  explicit OverruleWatch(Deps deps) : deps_(std::move(deps)) {}

  /// The kernel has it on `observed`, while it should be within `wanted`.
  void note_seen(const std::string& container_id, const CpuSet& observed, const CpuSet& wanted);
  /// The same where it is not within that, and nothing that was sent explains it. True if it is overruled.
  bool note_stray(const std::string& container_id, const CpuSet& observed, Look look);

  /// How long to wait before it is told `target`; none: no time.
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
  /// What is compared to know whether the machine's CPUs have changed.
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
    MachineMark machine;                  ///< then
  };

  MachineMark machine() const;
  bool was_never_told(const Allocation& allocation, const CpuSet& observed) const;
  bool may_be_the_kernels(const CpuSet& told, const CpuSet& observed) const;
  void commit_seen(const Allocation& allocation, const CpuSet& observed, bool is_ours, bool is_overruled);

  Deps deps_;
  std::map<std::string, Told> told_;  ///< by container
};

}  // namespace topolet::engine
