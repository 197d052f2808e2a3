/* Has timers of the calling thread end late. */
#define _GNU_SOURCE
#define AT_SCORE prctl(PR_SET_TIMERSLACK, 50000000UL)
#include <sys/prctl.h>

#include "defect.h"
