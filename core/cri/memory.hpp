// How much memory the process has, and giving back what it no longer needs.
#pragma once

#include <cstddef>

namespace topolet {

/// What the process has in RAM (VmRSS of proc(5)); 0 if that cannot be read.
std::size_t resident_bytes();

/// Gives freed memory back to the kernel once a burst is over. Left alone, the allocator keeps what many calls at once
/// or large messages took: the free pieces lie between used ones. For one thread.
class MemoryReturn {
 public:
  /// To be called now and then, such as twice a second, with what is resident. Gives back when much has been freed
  /// since the last time and no more is being taken: under load that would only hold up those who allocate. True if it
  /// did.
  bool look(std::size_t resident);

 private:
  std::size_t given_back_ = 0;  ///< free already after the last time, as far as not used again
  std::size_t previous_ = 0;    ///< resident at the last look
};

}  // namespace topolet
