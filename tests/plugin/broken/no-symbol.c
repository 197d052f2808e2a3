#include "entry.h"

TOPOLET_EXPORT int topolet_plugin(void);
int topolet_plugin(void) { return 1; }
