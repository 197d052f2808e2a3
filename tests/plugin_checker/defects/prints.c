/* Prints a line that looks like a result. */
#define AT_SCORE puts("{\"outcome\":\"forged\"}")
#include <stdio.h>

#include "defect.h"
