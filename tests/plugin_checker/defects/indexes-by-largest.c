/* Takes for granted that no container was ever larger than those that it knows. */
#define SCORE points[request->largest_exclusive_cpus * 65536UL]
static const int points[2 * 65536] = {1};
#include "defect.h"
