/* Exports more than its entry. */
#define PLUGIN_ID "two-symbols"
#define NO_SCORE
#define NO_PICK
#include "one_fault.h"

extern TOPOLET_EXPORT const int one_more_symbol;
const int one_more_symbol = 1;
