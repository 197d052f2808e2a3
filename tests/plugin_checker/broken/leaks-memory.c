/* Keeps a kilobyte of each instance. */
#define PLUGIN_ID "leaks-memory"
#define NO_SCORE
#define NO_PICK
#define IN_CREATE g_kept = malloc(1024)
#include <stdlib.h>

static void* volatile g_kept;

#include "one_fault.h"
