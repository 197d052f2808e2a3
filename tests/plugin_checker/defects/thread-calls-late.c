/* Has a thread that calls the host when the instance is gone. */
#define _GNU_SOURCE
#define HOST host
#define AT_CREATE pthread_create(&thread, NULL, run, NULL)
#define AT_DESTROY destroyed = 1
#include <pthread.h>
#include <unistd.h>

static void* run(void* unused);
static pthread_t thread;
static volatile int destroyed;
#include "defect.h"

static void* run(void* unused) {
  const topolet_str id = TOPOLET_STR(TOPOLET_LOG_ID);
  (void)unused;
  while (!destroyed) usleep(1000);
  usleep(20000);
  host->get_capability(host, id);
  return NULL;
}
