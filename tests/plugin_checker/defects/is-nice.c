/* Lowers the priority of the process. */
#define _GNU_SOURCE
#define AT_CREATE (void)!nice(3)
#include <unistd.h>

#include "defect.h"
