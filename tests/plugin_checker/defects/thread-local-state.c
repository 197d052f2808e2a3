/* Answers by what only the thread that created the instance knows. */
#define AT_CREATE known = 1
#define SCORE known

static _Thread_local int known;

#include "defect.h"
