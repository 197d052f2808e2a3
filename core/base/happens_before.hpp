// Order between threads that the thread sanitizer cannot see, because a library without it passes things on.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define TOPOLET_TSAN 1
#endif
#endif

namespace topolet {

/// Makes this thread's work until mark_handed_over(x) visible to whoever calls mark_taken(x) later. Does nothing
/// without the thread sanitizer.
inline void mark_handed_over([[maybe_unused]] const void* what) {
#ifdef TOPOLET_TSAN
  __tsan_release(const_cast<void*>(what));
#endif
}
inline void mark_taken([[maybe_unused]] const void* what) {
#ifdef TOPOLET_TSAN
  __tsan_acquire(const_cast<void*>(what));
#endif
}

}  // namespace topolet
