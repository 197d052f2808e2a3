// Containers that were seen on CPUs which another one has alone.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/index_set.hpp"
#include "core/engine/converge/footprints.hpp"
#include "core/engine/converge/overlap.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// Audits each overlap when it is seen, and when it is over: of a container that is overruled, which may come and go,
/// once for all the time that it is. Not those that are audited as a conflict with the kubelet,
/// or of a container that no CPU is left for. Lives on the loop's thread.
class OverlapWatch {
 public:
  struct Deps {
    Committer& committer;
    const Footprints& footprints;
    Clock clock;
  };
  /// Knows the overlaps of containers that were overruled before the daemon started: they were audited.
  explicit OverlapWatch(Deps deps);

  /// The container was seen to run on `cpus`. True if others have some of these alone.
  bool check(const std::string& container_id, const CpuSet& cpus);
  /// The container has ended, or its CPUs are not topolet's to set any more.
  void forget(const std::string& container_id);

  /// Returns the overlaps that are seen now.
  std::vector<Overlap> overlaps() const;

 private:
  using Pair = std::pair<std::string, std::string>;  ///< ids: who runs there, and whose CPUs they are
  struct Seen {
    Allocation subject;  ///< who runs there
    std::string owner;
    CpuSet cpus;
    std::chrono::steady_clock::time_point since;
    bool is_there = true;  ///< it has not left, as it may have for a while where it is overruled
  };

  std::map<std::string, CpuSet> overlaps_of(const std::string& container_id, const CpuSet& cpus) const;
  void begin(const Allocation& seen, const Allocation& owner, const CpuSet& cpus);
  void end(std::map<Pair, Seen>::iterator over, const std::string& how);
  std::chrono::milliseconds age(const Seen& seen) const;

  Deps deps_;
  std::map<Pair, Seen> seen_;
};

}  // namespace topolet::engine
