/* Answers by what it was asked before. */
#define AT_SCORE ++calls
#define SCORE calls % 100
static unsigned calls;
#include "defect.h"
