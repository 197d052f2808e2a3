/* Aborts in its exit handler. */
#define AT_EXIT abort()
#include <stdlib.h>

#include "defect.h"
