/* Handles a signal when it is loaded. */
#define AT_LOAD signal(SIGTERM, on_signal)
#include <signal.h>

static void on_signal(int number) { (void)number; }
#include "defect.h"
