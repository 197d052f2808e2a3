/* Answers by memory that it never wrote. */
#define SCORE unwritten()
#include <stdint.h>
#include <stdlib.h>

static int32_t unwritten(void) {
  void* volatile block = malloc(5000);
  const unsigned char* bytes = (const unsigned char*)block;
  const int32_t value = bytes[4321] % 100;
  free(block);
  return value;
}
#include "defect.h"
