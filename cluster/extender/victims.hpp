// Whom to evict from a node so that a pod finds its zones there: a pure function.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/api/pod.hpp"
#include "cluster/extender/budgets.hpp"
#include "cluster/extender/choose.hpp"
#include "cluster/extender/demand.hpp"
#include "cluster/extender/wire.hpp"
#include "cluster/extender/zone_book.hpp"
#include "core/base/result.hpp"

namespace topolet::extender {

/// A pod that is bound to the node and has not ended.
struct PodOnNode {
  std::string uid;
  std::string name;
  std::string name_space;
  std::map<std::string, std::string> labels;
  std::int64_t priority = 0;
  std::string started;             ///< as text, it sorts by time; empty: not yet
  bool is_ending = false;          ///< it was deleted, and is being stopped; or will be
  bool is_named = false;           ///< to be evicted for another pod: a scheduler takes its time to delete it
  bool is_mirror = false;          ///< the kubelet makes it again
  bool keeps_others_away = false;  ///< by its anti-affinity
  std::chrono::seconds grace{30};  ///< in which it may end
  api::Amounts requests;           ///< as a scheduler counts them
  /// The amounts that its end certainly frees, by zone's os_index; nothing if that is not known.
  std::vector<std::pair<std::uint32_t, Amounts>> frees;
  bool is_promised = false;   ///< its node does not count it yet, and the book does
  bool is_uncounted = false;  ///< it will take something of the zones that neither counts yet
};
/// Reads a pod, except the amounts that it frees and the counts.
PodOnNode read_pod_on_node(const nlohmann::json& pod);

/// Returns the amounts that are certain in the zones of a pod's annotation: those of containers on a single zone that
/// run together.
std::vector<std::pair<std::uint32_t, Amounts>> certain_parts(const NodeZones& node, const Demand& demand,
                                                             const ZoneAnnotation& annotation);

/// Returns true if only amounts, of all that evictions can change, keep a scheduler from placing the pod on a node:
/// then one victim is as good as another that frees as much.
bool wants_only_amounts(const nlohmann::json& pod);

struct Preemption {
  const Demand& demand;
  const NodeVictims& offered;          ///< by the scheduler, for which the amounts of the whole node are enough
  const std::vector<PodOnNode>& pods;  ///< all of the node
  const Budgets* budgets = nullptr;    ///< null: not known; then only those are evicted that are offered
  bool wants_only_amounts = false;
  api::Amounts requests = {};  ///< of the pod, as a scheduler counts them
};

struct PreemptionPlan {
  NodeVictims victims;
  std::vector<std::pair<std::uint32_t, Amounts>> keeps;  ///< for the pod, by zone's os_index
  std::chrono::seconds grace{0};                         ///< in which all victims have ended
};

/// Returns the offered victims if their end frees zones for the pod; those of them that go for another pod anyway are
/// not named again, and the others are no more than needed. Else returns as few as possible of the lowest priorities
/// whose zones are enough, with the fewest violated budgets. FAILED_PRECONDITION: nobody is to be evicted, as it would
/// be in vain, or might be.
Result<PreemptionPlan> plan_preemption(const ZoneBook::NodeRoom& room, const Preemption& preemption);

/// The zones that the pod will have when all have gone that are ending; nothing if it will not fit.
std::optional<std::vector<std::pair<std::uint32_t, Amounts>>> zones_after_ends(const ZoneBook::NodeRoom& room,
                                                                               const Demand& demand,
                                                                               const std::vector<PodOnNode>& pods);

}  // namespace topolet::extender
