/* Takes for granted that of every node it is known what its CPUs can do, once anything is measured. */
#define SCORE (request->load != 0 && request->load->nodes->effective_milli > 0)
#include "defect.h"
