/* Removes an environment variable. */
#define _GNU_SOURCE
#define AT_SCORE unsetenv("PATH")
#include <stdlib.h>

#include "defect.h"
