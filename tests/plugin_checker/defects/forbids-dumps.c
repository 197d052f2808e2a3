/* Has the process leave no core file. */
#define _GNU_SOURCE
#define AT_CREATE prctl(PR_SET_DUMPABLE, 0)
#include <sys/prctl.h>

#include "defect.h"
