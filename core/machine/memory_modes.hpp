// The memory policies that the kernel has.
#pragma once

#include <cstdint>

namespace topolet::machine {

/// Returns the modes of set_mempolicy(2), a bit `1 << mode` for each, as of placement::Settable. Asks the kernel, on a
/// thread of its own whose memory policy it sets; blocks until that has ended. None where the kernel does not answer.
std::uint32_t memory_modes();

}  // namespace topolet::machine
