/* Ends the process without exit handlers. */
#define AT_SCORE _exit(0)
#include <unistd.h>

#include "defect.h"
