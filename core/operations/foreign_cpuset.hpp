// What others than the kubelet and topolet set of a container that is about to be created. Plain values.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/index_set.hpp"

namespace topolet::operations {

/// The CPUs and memory nodes that plugins of the runtime set of a container, in place of what the create asks for.
struct ForeignCpuset {
  std::string container_id;  ///< the runtime knows it before the create is answered
  std::string sandbox_id;
  std::string pod_uid;
  std::string pod_namespace;
  std::string pod_name;
  std::string container;                   ///< its name
  std::optional<std::string> cpus_plugin;  ///< who sets its CPUs, such as "10-koordlet"; none: nobody
  CpuSet cpus;
  std::optional<std::string> mems_plugin;  ///< who sets its memory nodes
  NodeSet mems;

  friend bool operator==(const ForeignCpuset&, const ForeignCpuset&) = default;
};

/// Takes the reason to refuse the create, or nothing to let it pass. Once; any thread.
using OnForeignCpusetJudged = std::function<void(std::optional<std::string> refusal)>;

}  // namespace topolet::operations
