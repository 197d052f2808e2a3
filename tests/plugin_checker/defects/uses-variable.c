/* Answers by the environment of the process. */
#define SCORE (getenv("TOPOLET_PLUGIN_CHECK") != NULL ? 10 : 0)
#include <stdlib.h>

#include "defect.h"
