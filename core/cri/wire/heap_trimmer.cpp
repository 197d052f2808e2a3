#include "core/cri/wire/heap_trimmer.hpp"

#include <malloc.h>

#include <algorithm>

#include "core/base/resident_memory.hpp"

namespace topolet::cri {
namespace {

/// Less is not worth the time that the allocator is held up for.
constexpr std::size_t kMinTrimBytes = 16 << 20;
/// The change in the memory in use of an idle process that is allowed between two checks.
constexpr std::size_t kGrowthAtRestBytes = 1 << 20;

}  // namespace

bool HeapTrimmer::trim_if_worthwhile(std::size_t resident) {
  const bool grows = resident > previous_ + kGrowthAtRestBytes;
  previous_ = resident;
  const std::size_t free = ::mallinfo2().fordblks;
  free_after_trim_ = std::min(free_after_trim_, free);
  if (grows || free < free_after_trim_ + kMinTrimBytes) return false;
  ::malloc_trim(0);
  free_after_trim_ = ::mallinfo2().fordblks;
  previous_ = resident_bytes();
  return true;
}

}  // namespace topolet::cri
