/* Takes for granted that it knows every class of service. */
#define SCORE points[request->workload->qos * 4096]
static const int points[3 * 4096] = {1};
#include "defect.h"
