/* Opens a file in each call. */
#define AT_SCORE (void)!dup(STDERR_FILENO)
#include <unistd.h>

#include "defect.h"
