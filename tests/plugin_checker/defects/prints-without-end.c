/* Prints something that stays in the buffer. */
#define AT_NOTIFY fputs("x", stdout)
#include <stdio.h>

#include "defect.h"
