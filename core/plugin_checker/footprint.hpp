// What this process uses, to be compared before and after.
#pragma once

#include <cstddef>

namespace topolet::plugin_checker {

struct Footprint {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t kept_bytes = 0;  ///< of the heap
  /// 0 where the allocator does not tell what is in use, as the address sanitizer's, which keeps what is freed.
  std::size_t resident_bytes = 0;

  Footprint grown_since(const Footprint& before) const;
};

Footprint measure_footprint();

/// True if a thread of this process besides the calling one is running, or would be if there were a CPU for it.
bool another_thread_is_running();

/// Returns the CPU time that this process has used, in milliseconds.
double cpu_ms();

}  // namespace topolet::plugin_checker
