#include "core/cri/memory.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace topolet {
namespace {

/// Less is not worth the time that the allocator is held up for.
constexpr std::size_t kWorthIt = 16 << 20;
/// What memory in use may waver by between two looks of a process that has come to rest.
constexpr std::size_t kStill = 1 << 20;

}  // namespace

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total_pages = 0;
  std::size_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return statm ? resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

bool MemoryReturn::look(std::size_t resident) {
  const bool grows = resident > previous_ + kStill;
  previous_ = resident;
  const std::size_t free = ::mallinfo2().fordblks;
  given_back_ = std::min(given_back_, free);
  if (grows || free < given_back_ + kWorthIt) return false;
  ::malloc_trim(0);
  given_back_ = ::mallinfo2().fordblks;
  previous_ = resident_bytes();
  return true;
}

}  // namespace topolet
