/* Answers by the CPUs that the process may use. */
#define _GNU_SOURCE
#define SCORE allowed_cpus()
#include <sched.h>
#include <stdint.h>

static int32_t allowed_cpus(void) {
  cpu_set_t set;
  sched_getaffinity(0, sizeof(set), &set);
  return CPU_COUNT(&set) % 100;
}
#include "defect.h"
