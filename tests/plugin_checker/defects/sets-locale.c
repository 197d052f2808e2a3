/* Changes the locale of the process. */
#define AT_LOAD setlocale(LC_ALL, "C.UTF-8")
#include <locale.h>

#include "defect.h"
