/* Prints a line at the end of the process. */
#define AT_EXIT (void)!write(STDOUT_FILENO, "bye\n", 4)
#include <unistd.h>

#include "defect.h"
