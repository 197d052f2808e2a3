/* Changes how floating-point numbers are rounded. */
#define AT_SCORE fesetround(FE_UPWARD)
#include <fenv.h>

#include "defect.h"
