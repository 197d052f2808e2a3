/* Leaves a file open when its instance is destroyed. */
#define AT_SCORE \
  if (file < 0) file = open("/dev/null", O_WRONLY | O_CLOEXEC)
#include <fcntl.h>

static int file = -1;
#include "defect.h"
