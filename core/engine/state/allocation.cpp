#include "core/engine/state/allocation.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace topolet::engine {
namespace {

constexpr std::array kPhases{Phase::kPending, Phase::kInDoubt, Phase::kCreated, Phase::kStarting,
                             Phase::kRunning, Phase::kCrashed, Phase::kKept};

/// kubectl repeats the whole pod in it, values of environment variables included.
constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

}  // namespace

std::string_view to_string(Squeeze squeeze) {
  switch (squeeze) {
    case Squeeze::kNone:
      return "";
    case Squeeze::kPlaced:
      return "placed";
    case Squeeze::kLeftToKernel:
      return "left-to-kernel";
  }
  return "?";
}

std::string_view to_string(QuotaState quota) {
  switch (quota) {
    case QuotaState::kAsAsked:
      return "";
    case QuotaState::kDropped:
      return "dropped";
    case QuotaState::kGivenBack:
      return "given-back";
  }
  return "?";
}

std::string_view to_string(MoveCause cause) {
  switch (cause) {
    case MoveCause::kHeal:
      return "heal";
    case MoveCause::kRoom:
      return "room";
    case MoveCause::kCrowd:
      return "crowd";
    case MoveCause::kReturn:
      return "return";
    case MoveCause::kPlugin:
      return "plugin";
  }
  return "?";
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return "pending";
    case Phase::kInDoubt:
      return "in_doubt";
    case Phase::kCreated:
      return "created";
    case Phase::kStarting:
      return "starting";
    case Phase::kRunning:
      return "running";
    case Phase::kCrashed:
      return "crashed";
    case Phase::kKept:
      return "kept";
  }
  return "";
}

std::optional<Phase> phase_from(std::string_view name) {
  const auto* const found =
      std::find_if(kPhases.begin(), kPhases.end(), [&](Phase phase) { return to_string(phase) == name; });
  if (found == kPhases.end()) return std::nullopt;
  return *found;
}

bool was_just_moved(const Allocation& allocation, std::chrono::milliseconds now) {
  if (!allocation.last_move) return false;
  const std::chrono::milliseconds since = now - allocation.last_move->at;
  return since < kBetweenMovesOfOne && since > -kBetweenMovesOfOne;
}

MovedFrom place_of(const Allocation& allocation) {
  MovedFrom place;
  place.placement = allocation.placement;
  place.placement.added = {};
  place.mems_to_keep = allocation.mems_to_keep;
  place.within = allocation.within;
  place.nodes = allocation.nodes;
  place.reason = allocation.reason;
  place.preferred = allocation.preferred;
  place.arrived_cpus = allocation.arrived_cpus;
  place.evaluated_cpus = allocation.evaluated_cpus;
  place.restricted = allocation.restricted;
  place.squeeze = allocation.squeeze;
  place.unified = allocation.unified;
  place.tags = allocation.workload.tags;
  return place;
}

void put_back(const MovedFrom& place, Allocation& allocation) {
  allocation.placement = place.placement;
  allocation.mems_to_keep = place.mems_to_keep;
  allocation.within = place.within;
  allocation.nodes = place.nodes;
  allocation.reason = place.reason;
  allocation.preferred = place.preferred;
  allocation.arrived_cpus = place.arrived_cpus;
  allocation.evaluated_cpus = place.evaluated_cpus;
  allocation.restricted = place.restricted;
  allocation.squeeze = place.squeeze;
  allocation.unified = place.unified;
  allocation.moved_from.reset();
}

std::string_view seen_mode(const Allocation& allocation) {
  if (allocation.is_exclusive()) {
    if (allocation.overruled) return "overruled";
    if (!allocation.seen_on.empty()) return "drifted";
    if (!allocation.overlapped.empty()) return "overlapped";
  }
  return to_string(allocation.placement.mode);
}

bool Pod::add_warnings(const std::vector<std::string>& warnings) {
  const std::size_t before = warned.size();
  for (const std::string& warning : warnings) {
    if (!was_warned(warning)) warned.push_back(warning);
  }
  return warned.size() > before;
}

CpuSet Allocation::barred_cpus() const {
  // A plugin of the runtime has put it there while it is created.
  if (is_pending() && overruled) return overruled->cpus;
  if (!is_managed()) return {};
  CpuSet barred = stuck ? stuck->cpus : CpuSet();
  if (overruled) barred |= overruled->cpus | seen_on;
  return barred;
}

void drop_secrets(placement::Workload& workload) {
  workload.env.clear();
  workload.pod_annotations.erase(kLastApplied);
}

void drop_secrets(Pod& pod) { pod.sandbox.annotations.erase(kLastApplied); }

}  // namespace topolet::engine
