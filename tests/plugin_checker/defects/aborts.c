/* Aborts. */
#define AT_SCORE abort()
#include <stdlib.h>

#include "defect.h"
