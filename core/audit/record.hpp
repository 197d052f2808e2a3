// One decision as the audit tells it. Plain values.
//
// The room core/audit, namespace topolet::audit: answers questions about what is and was held, from the state database
// alone. Start at History. It may include core/base, core/placement and the store, and no other room of this tree.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/index_set.hpp"
#include "core/placement/placement.hpp"

namespace topolet::audit {

/// A decision that holds CPUs, with the container that it is about.
struct Record {
  std::int64_t decision = 0;
  std::int64_t at_ms = 0;  ///< when it was made
  std::int64_t generation = 0;
  std::string event;
  std::string pod_uid;
  std::string pod_namespace;
  std::string pod_name;
  std::string container;
  std::int64_t attempt = 0;
  std::string container_id;
  std::string qos;
  std::int64_t cpu_request_milli = 0;
  std::int64_t memory_request_bytes = 0;
  placement::Mode mode = placement::Mode::kShared;
  /// When it was decided, or where it was last while the pool had CPUs for it. State::cpus_of() says where it is.
  CpuSet cpus;
  CpuSet within;  ///< shared, reserved: the CPUs it may use when they are in the pool
  CpuSet withheld;
  NodeSet mems;
  bool is_bounded = false;  ///< the kubelet said where: it never leaves `within`
  bool conflict = false;    ///< it stays where the kubelet put it, although others hold these CPUs
  std::string nodes;
  std::string reason;
  bool memory_request_estimated = false;  ///< from `oom_score_adj`
  std::int64_t memory_limit_bytes = 0;
  std::int64_t oom_score_adj = 0;
  bool is_kept = false;  ///< by then it had ended, and what it held was kept for its next attempt

  bool follows_pool() const { return placement::follows_pool(mode) && !conflict; }
};

}  // namespace topolet::audit
