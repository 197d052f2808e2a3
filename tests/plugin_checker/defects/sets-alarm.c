/* Sets the alarm of the process. */
#define AT_SCORE alarm(1000)
#include <unistd.h>

#include "defect.h"
