/* Closes what it did not open. */
#define AT_SCORE \
  for (int fd = 0; fd < 256; ++fd) close(fd)
#include <unistd.h>

#include "defect.h"
