/* Answers by how many instances there were. */
#define AT_CREATE ++instances
#define SCORE instances
static int instances;
#include "defect.h"
