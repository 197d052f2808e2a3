/* Has a thread that uses a CPU all the time. */
#define _GNU_SOURCE
#define AT_CREATE pthread_create(&thread, NULL, run, NULL)
#define AT_DESTROY \
  destroyed = 1;   \
  pthread_join(thread, NULL)
#include <pthread.h>

static volatile int destroyed;
static pthread_t thread;

static void* run(void* unused) {
  (void)unused;
  while (!destroyed) continue;
  return NULL;
}

#include "defect.h"
