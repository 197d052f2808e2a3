/* Changes the working directory. */
#define AT_SCORE (void)!chdir("/proc")
#include <unistd.h>

#include "defect.h"
