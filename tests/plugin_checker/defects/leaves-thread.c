/* Does not join its thread. */
#define _GNU_SOURCE
#define AT_CREATE pthread_create(&thread, NULL, run, NULL)
#include <pthread.h>
#include <unistd.h>

static void* run(void* unused) {
  (void)unused;
  for (;;) pause();
  return NULL;
}

static pthread_t thread;
#include "defect.h"
