#include "core/machine/memory_modes.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "core/placement/linux_settings.hpp"

namespace topolet::machine {
namespace {

/// The kernel refuses masks that are larger than a page.
constexpr unsigned long kMostNodes = 4096;
using NodeMask = std::array<unsigned long, kMostNodes / (8 * sizeof(unsigned long))>;
constexpr unsigned long kAllowedNodes = 4;  // MPOL_F_MEMS_ALLOWED

bool get_allowed_nodes(NodeMask& nodes) {
  return ::syscall(SYS_get_mempolicy, nullptr, nodes.data(), kMostNodes, nullptr, kAllowedNodes) == 0;
}

bool set_policy(placement::MemoryMode mode, const NodeMask& nodes) {
  const bool has_nodes = mode != placement::MemoryMode::kLocal;
  return ::syscall(SYS_set_mempolicy, static_cast<int>(mode), has_nodes ? nodes.data() : nullptr,
                   has_nodes ? kMostNodes : 0) == 0;
}

}  // namespace

std::uint32_t memory_modes() {
  std::uint32_t modes = 0;
  std::thread([&modes] {
    NodeMask nodes{};
    if (!get_allowed_nodes(nodes)) return;
    for (const placement::MemoryMode mode : placement::kMemoryModes) {
      if (set_policy(mode, nodes)) modes |= 1U << static_cast<unsigned>(mode);
    }
  }).join();
  return modes;
}

}  // namespace topolet::machine
