// PCI vendors and classes, as the PCI ID repository lists them.
#pragma once

#include <cstdint>

namespace topolet::gpu {

constexpr std::uint32_t kAmdVendor = 0x1002;
constexpr std::uint32_t kNvidiaVendor = 0x10de;
constexpr std::uint32_t kHuaweiVendor = 0x19e5;
constexpr std::uint32_t kIntelVendor = 0x8086;

/// Base classes.
constexpr std::uint32_t kStorageClass = 0x01;
constexpr std::uint32_t kNetworkClass = 0x02;
constexpr std::uint32_t kDisplayClass = 0x03;
constexpr std::uint32_t kAcceleratorClass = 0x12;

/// Base class and subclass.
constexpr std::uint32_t kVgaClass = 0x0300;
constexpr std::uint32_t kInfinibandClass = 0x0c06;

}  // namespace topolet::gpu
