/* Writes to what it is lent. */
#define AT_SCORE ((topolet_request*)(uintptr_t)request)->exclusive = 1
#include <stdint.h>

#include "defect.h"
