/* Answers by where a library lies. */
#define SCORE (int32_t)((uintptr_t)&score >> 12) % 100
#include "defect.h"
