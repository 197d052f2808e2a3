/* Answers by the number of the process. */
#define SCORE getpid() % 100
#include <unistd.h>

#include "defect.h"
