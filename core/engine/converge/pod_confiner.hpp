// Pods whose containers topolet does not place, and how they are kept off the CPUs that others have exclusively.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/engine/converge/placed_handlers.hpp"
#include "core/engine/converge/pod_cgroups.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// Keeps the cgroups of such pods within the shared pool: their cpusets are set before anybody acts on a transition
/// that changes the pool, and so before a container starts that gets CPUs exclusively. Pods count from their sandbox
/// on, which may run for long before it has a container. That a pod is kept so is a field of it (Pod::confined), so
/// that a later topoletd which is told otherwise takes it back. Lives on the loop's thread.
class PodConfiner final : public Observer {
 public:
  struct Deps {
    Loop& loop;
    Committer& committer;
    PodCgroups cgroups;
    const PlacedHandlers& placed_handlers;
    bool enabled;  ///< placement.confine-foreign
    Log& log;
  };
  explicit PodConfiner(Deps deps) : deps_(std::move(deps)) {}

  void on_durable(const Transition& transition) override;
  /// The ledger is known to be right: all are set, or what an earlier topoletd had set is taken back.
  void on_reconciled() override;
  /// Takes back what was set, and sets nothing any more.
  void end();

  /// Returns why pods cannot be kept within the pool, by NAMESPACE/POD.
  const std::map<std::string, std::string>& failures() const { return failures_; }

 private:
  struct ForeignPod {
    std::string name;  ///< NAMESPACE/POD
    CpuSet cpus;       ///< that it may use
  };
  std::map<std::string, ForeignPod> foreign_pods() const;
  bool is_foreign(const Pod& pod) const;
  bool concerns_foreign(const Transition& transition) const;
  void confine_all();
  Status confine(const std::string& uid, const ForeignPod& pod);
  void release_all();
  void note(const std::string& uid, bool confined);
  void note_failure(const ForeignPod& pod, const Status& status);

  Deps deps_;
  std::map<std::string, std::filesystem::path> cgroups_;  ///< by pod uid
  std::map<std::string, CpuSet> set_;                     ///< by pod uid: what its cgroup was last set to
  std::map<std::string, std::string> failures_;
  bool has_foreign_ = false;
};

}  // namespace topolet::engine
