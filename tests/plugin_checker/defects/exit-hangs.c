/* Never comes back from its exit handler. */
#define AT_EXIT \
  for (;;) pause()
#include <unistd.h>

#include "defect.h"
