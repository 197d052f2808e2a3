/* Has a thread that lets in the signals for which the main thread waits. */
#define _GNU_SOURCE
#define AT_CREATE pthread_create(&thread, NULL, run, NULL)
#define AT_DESTROY        \
  pthread_cancel(thread); \
  pthread_join(thread, NULL)
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static void* run(void* unused) {
  (void)unused;
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  for (;;) pause();
  return NULL;
}

static pthread_t thread;
#include "defect.h"
