/* Answers by the name of the host. */
#define _GNU_SOURCE
#define SCORE host_number()
#include <stdint.h>
#include <unistd.h>

static int32_t host_number(void) {
  char name[64] = "";
  int32_t number = 0;
  gethostname(name, sizeof(name) - 1);
  for (const char* letter = name; *letter != '\0'; ++letter) number = (31 * number + *letter) % 101;
  return number;
}

#include "defect.h"
