// The CRI requests that a kubelet makes of pods and containers.
//
// Formulas: MilliCPUToShares and MilliCPUToQuota in the kubelet's pkg/kubelet/cm, GetContainerOOMScoreAdjust in
// pkg/kubelet/qos.
#pragma once

#include <cstdint>
#include <string>

#include "core/placement/workload.hpp"
#include "core/simulate/operation.hpp"

namespace topolet::simulate {

/// A pod that runs.
struct SimulatedPod {
  Operation spec;  ///< run_pod
  std::string sandbox_id;
};

/// The class the pod names, else the one that the resources have by the kubelet's rules.
placement::Qos qos_of(const SimulatedPod& pod, const Resources& resources);

std::string run_pod_request(const Operation& run_pod, std::int64_t memory_total_bytes);
std::string create_request(const Operation& create, const SimulatedPod& pod, std::uint32_t attempt,
                           std::int64_t memory_total_bytes);
/// Only what the line says is in it.
std::string update_request(const Operation& update, const std::string& container_id, placement::Qos qos,
                           std::int64_t memory_total_bytes);
std::string id_request(const std::string& id);

}  // namespace topolet::simulate
