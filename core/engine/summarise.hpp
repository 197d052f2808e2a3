// What the parts of the engine tell of themselves, as one summary.
#pragma once

#include <chrono>

#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/placed_handlers.hpp"
#include "core/engine/converge/pod_confiner.hpp"
#include "core/engine/converge/pod_quotas.hpp"
#include "core/engine/converge/releaser.hpp"
#include "core/engine/engine_summary.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

struct SummarySources {
  const Committer& committer;
  const Placer& placer;
  const Mover& mover;
  const PodConfiner& confiner;
  const PodQuotas& pod_quotas;
  const Releaser& releaser;
  const CpusetWriter& cpusets;
  const PlacedHandlers& placed_handlers;
  bool confines_foreign = false;
  bool reconciled = false;          ///< with the runtime, since the start
  std::chrono::milliseconds now{};  ///< wall clock
};

EngineSummary summarise(const SummarySources& sources);

}  // namespace topolet::engine
