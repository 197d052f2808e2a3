/* Has denormals become zero, as a library that is built with -ffast-math does when it is loaded. */
#if defined(__x86_64__)
#define AT_LOAD _mm_setcsr(_mm_getcsr() | 0x8040U)
#include <xmmintrin.h>
#else
#define AT_LOAD fesetround(FE_UPWARD)
#include <fenv.h>
#endif
#include "defect.h"
