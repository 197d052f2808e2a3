/* Waits in each call. */
#define _GNU_SOURCE
#define AT_NOTIFY usleep(110000)
#include <unistd.h>

#include "defect.h"
