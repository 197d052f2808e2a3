#include "entry.h"

ENTRY("no-create", NULL);
