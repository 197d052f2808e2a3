// Takes back what topolet has done to containers, before it is uninstalled.
#pragma once

#include <map>
#include <utility>

#include "core/engine/converge/besteffort_relief.hpp"
#include "core/engine/converge/home_relief.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/placed_handlers.hpp"
#include "core/engine/converge/pod_confiner.hpp"
#include "core/engine/converge/rebalancer.hpp"
#include "core/engine/converge/release_report.hpp"

namespace topolet::engine {

/// Lives on the loop's thread.
class Releaser {
 public:
  struct Deps {
    Committer& committer;
    Mover& mover;
    BestEffortRelief& besteffort_relief;
    HomeRelief& home_relief;
    Rebalancer& rebalancer;
    PlacedHandlers& placed_handlers;
    PodConfiner& confiner;
    Log& log;
  };
  explicit Releaser(Deps deps) : deps_(std::move(deps)) {}
  Releaser(const Releaser&) = delete;
  Releaser& operator=(const Releaser&) = delete;

  /// Takes back, has the runtime told, and waits ten seconds for that. From then on nobody is narrowed or bound again;
  /// with the cpusets, nobody is moved either, and containers that are created are left to the runtime.
  void release(bool cpusets, OnReleased then);
  Released released() const { return released_; }

 private:
  struct Wait;

  void stop_deciding(bool cpusets);
  std::map<placement::ContainerKey, ContainerCpuset> told() const;
  void await_all(const std::map<placement::ContainerKey, ContainerCpuset>& before, const OnReleased& then);

  const Deps deps_;
  Released released_ = Released::kNothing;
};

}  // namespace topolet::engine
