/* Calls itself without end. */
#define AT_SCORE deeper(1)
#include <stddef.h>

static int deeper(volatile int depth) {
  volatile char used[4096];
  used[0] = (char)depth;
  return depth < 0 ? 0 : deeper(depth + 1) + used[0];
}
#include "defect.h"
