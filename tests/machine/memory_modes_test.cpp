#include "core/machine/memory_modes.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/placement/linux_settings.hpp"

namespace topolet::machine {
namespace {

/// The mode of this thread; -1 where the kernel does not say.
int own_memory_mode() {
  int mode = -1;
  return ::syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 ? mode : -1;
}

TEST(MemoryModes, AreThoseThatTheKernelTakes) {
  const int before = own_memory_mode();
  if (before < 0) GTEST_SKIP() << "the kernel says nothing of memory policies here";
  const placement::Settable settable{.memory_modes = memory_modes()};
  for (const auto mode : {placement::MemoryMode::kPreferred, placement::MemoryMode::kBind,
                          placement::MemoryMode::kInterleave, placement::MemoryMode::kLocal}) {
    EXPECT_TRUE(settable.can_set(mode)) << to_string(mode) << " is older than all kernels that topolet runs on";
  }
  EXPECT_EQ(settable.memory_modes & ~placement::all_memory_modes(), 0U);
  EXPECT_EQ(own_memory_mode(), before) << "the caller keeps its own";
}

}  // namespace
}  // namespace topolet::machine
