/* Writes into a reserved field. */
#define RESERVED 7
#include "defect.h"
