/* Ignores a signal. */
#define AT_NOTIFY signal(SIGCHLD, SIG_IGN)
#include <signal.h>

#include "defect.h"
