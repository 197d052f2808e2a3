// Where a container is to run, as a runtime is told it.
#pragma once

#include <optional>

#include "core/base/index_set.hpp"
#include "core/base/shared_string_map.hpp"
#include "core/operations/demand.hpp"

namespace topolet::operations {

/// The cpuset that a container is to have, or has, and its CFS quota where that is not the kubelet's alone to say.
struct ContainerCpuset {
  CpuSet cpus;
  NodeSet mems;                        ///< empty = left alone
  std::optional<CfsQuota> quota = {};  ///< none = left alone
  SharedStringMap unified = {};        ///< files of its cgroup v2 to write besides; all others are left alone

  friend bool operator==(const ContainerCpuset&, const ContainerCpuset&) = default;
};

}  // namespace topolet::operations
