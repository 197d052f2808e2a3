/* Sets an environment variable. */
#define _GNU_SOURCE
#define AT_CREATE setenv("TOPOLET_DEFECT", "1", 1)
#include <stdlib.h>

#include "defect.h"
