// NVIDIA's management library, if the machine has it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugins/gpu/nvidia_gpu.hpp"

namespace topolet::gpu {

struct NvmlAnswer {
  std::vector<NvidiaGpu> gpus;             ///< by NVML index
  std::map<std::string, std::string> mig;  ///< PCI address of the GPU by a MIG device's UUID
  std::string fault;                       ///< why nothing is known; empty if all went well
};

/// Loads the library for as long as it takes to ask it. `library`: a name for the dynamic linker; empty asks nothing.
/// Takes up to seconds where the driver has to wake GPUs.
NvmlAnswer ask_nvml(const std::string& library);

}  // namespace topolet::gpu
