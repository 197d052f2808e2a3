// Gives back memory that the process no longer needs.
#pragma once

#include <cstddef>

namespace topolet::cri {

/// Gives freed memory back to the kernel once a burst is over. Left alone, the allocator keeps what many calls at once
/// or large messages took: the free pieces lie between used ones. For one thread.
class HeapTrimmer {
 public:
  /// To be called now and then, such as twice a second, with what is resident. Gives back when much has been freed
  /// since the last time and no more is being taken: under load that would only hold up those who allocate. True if it
  /// did.
  bool trim_if_worthwhile(std::size_t resident);

 private:
  std::size_t free_after_trim_ = 0;  ///< free already after the last time, as far as not used again
  std::size_t previous_ = 0;         ///< resident at the last check
};

}  // namespace topolet::cri
