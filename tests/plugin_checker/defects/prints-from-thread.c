/* Prints from a thread of its own. */
#define _GNU_SOURCE
#define AT_CREATE pthread_create(&thread, NULL, run, NULL)
#define AT_DESTROY pthread_join(thread, NULL)
#include <pthread.h>
#include <unistd.h>

static void* run(void* unused) {
  (void)unused;
  (void)!write(STDOUT_FILENO, "x", 1);
  return NULL;
}

static pthread_t thread;
#include "defect.h"
