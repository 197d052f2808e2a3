// The outcome of a placement decision, with its reasons. Plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/shared_string_map.hpp"
#include "core/load/load.hpp"
#include "core/placement/placement.hpp"
#include "core/placement/verdicts.hpp"
#include "core/placement/workload.hpp"

namespace topolet::placement {

/// The times that a decision has taken, as far as they are measured.
struct DecisionTimes {
  std::chrono::microseconds queued{};                              ///< from the request's arrival until it was taken up
  std::chrono::microseconds decide{};                              ///< policies included
  std::map<std::string, std::chrono::microseconds> policies = {};  ///< by name
};

/// Another container that is to be placed anew with this decision, if it may move.
struct WishedReplacement {
  ContainerKey key;
  bool move_nodes = false;  ///< false: only inside the nodes it is on
  std::string why;          ///< "policy: reason"

  friend bool operator==(const WishedReplacement&, const WishedReplacement&) = default;
};

/// How many of the best candidates a decision tells the nodes of.
inline constexpr std::size_t kBestNodes = 33;

/// The nodes of a candidate, and its score: the weighted sum over all policies.
struct RankedNodes {
  NodeSet nodes;
  std::int64_t sum = 0;
};

struct Decision {
  bool denied = false;
  bool unpinned = false;             ///< decided without any policy's answer
  bool conflict = false;             ///< the kubelet's set overlaps what others hold; applied as it said
  bool shared_because_full = false;  ///< it asked for CPUs of its own that were not there
  bool pod_scope = false;            ///< as in CommonOptions: the container may be on the nodes of its pod only
  /// Shared: policies let it run on CPUs beside these, too, while others have some to spare.
  bool soft_home = false;
  Placement placement;                    ///< of a denial: nothing
  CpuSet within;                          ///< shared, reserved: the CPUs it may use when they are in the pool
  NodeSet nodes;                          ///< of the candidate that won; none: the CPUs outside any node
  CpuSet cpus_of_candidate;               ///< with the nodes, these tell it from all others
  std::vector<std::string> used_devices;  ///< that policies say the container uses, each once, in order
  /// The tags that the container has from now on; none: as before.
  std::optional<SharedStringMap> tags = {};
  /// The files of its cgroup v2 that are set from now on, besides those that were before.
  SharedStringMap unified = {};
  std::string reason;       ///< for people; of a denial: what was asked, what was free, the way out
  std::string reason_code;  ///< the same in a word, for programs: see reason_codes.hpp
  DecisionTimes times;
  std::int64_t setup = 0;  ///< the number of the configuration and plugins that made it; 0 = none is known
  Verdicts verdicts;
  std::vector<WishedReplacement> replace;  ///< in the order of their keys
  std::vector<RankedNodes> best_nodes;  ///< of candidates that no policy rejected, the best first: kBestNodes at most
  std::vector<std::string> scored_by;   ///< names of the policies that gave some candidate a score, each once
  std::vector<std::string> lost_votes;  ///< names of the policies whose vote was lost
  struct InvalidReply {
    std::string policy;
    std::string what;
  };
  std::vector<InvalidReply> invalid_replies;  ///< those of them that only the core could detect
  /// What was measured, if policies read that; null: they do not, or nothing was.
  std::shared_ptr<const load::Load> load = {};
};

}  // namespace topolet::placement
