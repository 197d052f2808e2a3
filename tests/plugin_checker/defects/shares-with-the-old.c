/* Has what all instances use destroyed with the first of them. */
#define AT_CREATE \
  if (shared == NULL) shared = (int*)calloc(100, sizeof(int))
#define AT_DESTROY free(shared)
#define SCORE shared[50] % 100
#include <stdlib.h>

static int* shared;

#include "defect.h"
