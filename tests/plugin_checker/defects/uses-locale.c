/* Gives the calling thread a locale of its own. */
#define _GNU_SOURCE
#define AT_SCORE uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0))
#include <locale.h>

#include "defect.h"
