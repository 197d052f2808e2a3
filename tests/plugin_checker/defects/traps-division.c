/* Has floating-point divisions by zero trap. */
#define _GNU_SOURCE
#define AT_CREATE feenableexcept(FE_DIVBYZERO)
#include <fenv.h>

#include "defect.h"
