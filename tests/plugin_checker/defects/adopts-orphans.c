/* Has orphans become children of the process. */
#define _GNU_SOURCE
#define AT_SCORE prctl(PR_SET_CHILD_SUBREAPER, 1)
#include <sys/prctl.h>

#include "defect.h"
