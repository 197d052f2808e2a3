/* Changes how the process is laid out and run. */
#define _GNU_SOURCE
#define AT_LOAD personality(ADDR_COMPAT_LAYOUT)
#include <sys/personality.h>

#include "defect.h"
