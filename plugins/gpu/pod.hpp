// The other containers of a pod.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>

namespace topolet::gpu {

/// The containers of the pod that are placed already, and the CPUs of those that are still to come.
struct Pod {
  sdk::Set nodes;                  ///< with CPUs of those that request something, by OS index
  bool uses_accelerators = false;  ///< one of them does
  std::size_t cpus_to_come = 0;    ///< whole ones that it requests beyond those and the container itself
};

Pod pod_of(const topolet_request& request);

}  // namespace topolet::gpu
