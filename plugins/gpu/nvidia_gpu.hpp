// An NVIDIA GPU as the driver lists it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace topolet::gpu {

struct NvidiaGpu {
  std::string address;                   ///< PCI address
  std::string uuid;                      ///< "GPU-…"; empty if unknown
  std::optional<std::uint32_t> minor{};  ///< N of /dev/nvidiaN, which is not the NVML index
};

}  // namespace topolet::gpu
