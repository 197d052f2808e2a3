/* Exports more than its entry. */
#define PLUGIN_ID "two-symbols"
#define NO_SCORE
#define NO_PICK
#include "one_fault.h"

/* NOLINTNEXTLINE(readability-identifier-naming): plugins name theirs as they like */
extern TOPOLET_EXPORT const int one_more_symbol;
const int one_more_symbol = 1;
