/* Lowers how many files may be open. */
#define _GNU_SOURCE
#define AT_CREATE lower()
#include <sys/resource.h>

static void lower(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 200;
  setrlimit(RLIMIT_NOFILE, &limit);
}
#include "defect.h"
