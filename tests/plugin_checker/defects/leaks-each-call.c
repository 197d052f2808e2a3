/* Loses memory in each call. */
#define AT_SCORE lost = malloc(2048)
#include <stdlib.h>

static void* volatile lost;

#include "defect.h"
