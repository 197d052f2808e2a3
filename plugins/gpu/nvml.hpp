// GPUs as NVIDIA's management library (NVML) reports them, if the machine has it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugins/gpu/nvidia_gpu.hpp"

namespace topolet::gpu {

struct NvmlDevices {
  std::vector<NvidiaGpu> gpus;             ///< by NVML index
  std::map<std::string, std::string> mig;  ///< UUID of a MIG device → PCI address of its GPU
  std::string error;                       ///< why nothing is known; empty after success
};

/// Loads the library, which stays in the process, and asks it. Nothing of it keeps a GPU in use afterwards. `library`
/// is a name for the dynamic linker; if it is empty, nothing is loaded. Takes up to seconds where the driver has to
/// wake GPUs.
NvmlDevices query_nvml(const std::string& library);

}  // namespace topolet::gpu
