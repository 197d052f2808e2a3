/* Makes a timer and keeps it. */
#define _GNU_SOURCE
#define AT_CREATE                                         \
  struct sigevent nothing = {.sigev_notify = SIGEV_NONE}; \
  timer_t timer;                                          \
  timer_create(CLOCK_MONOTONIC, &nothing, &timer)
#include <signal.h>
#include <time.h>

#include "defect.h"
