/* Kills the process. */
#define _GNU_SOURCE
#define AT_SCORE kill(getpid(), SIGKILL)
#include <signal.h>
#include <unistd.h>

#include "defect.h"
