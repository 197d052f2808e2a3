/* Opens a file for each instance. */
#define PLUGIN_ID "leaks"
#define NO_SCORE
#define NO_PICK
#define IN_CREATE (void)dup(2)
#include <unistd.h>

#include "one_fault.h"
