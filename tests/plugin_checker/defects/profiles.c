/* Has the process profiled by a timer. */
#define _GNU_SOURCE
#define AT_CREATE setitimer(ITIMER_PROF, &interval, NULL)
#include <sys/time.h>

static const struct itimerval interval = {{1000, 0}, {1000, 0}};
#include "defect.h"
