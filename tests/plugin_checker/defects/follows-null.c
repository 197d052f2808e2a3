/* Follows a null pointer in notify(). */
#define AT_NOTIFY *(volatile int*)nowhere = 1
static void* volatile nowhere;
#include "defect.h"
