/* Blocks a signal on the calling thread. */
#define _GNU_SOURCE
#define AT_SCORE block()
#include <signal.h>

static void block(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}
#include "defect.h"
