/* Gives the calling thread another name. */
#define _GNU_SOURCE
#define AT_CREATE prctl(PR_SET_NAME, "mine")
#include <sys/prctl.h>

#include "defect.h"
