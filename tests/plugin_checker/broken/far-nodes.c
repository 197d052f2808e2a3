/* Proposes a node that the machine does not have. */
#define PLUGIN_ID "far-nodes"
#define NO_SCORE
#define NO_PICK
#define HAS_PROPOSE
#include "one_fault.h"

static int32_t propose(const topolet_instance* instance, const topolet_request* request,
                       const topolet_propose_sink* sink) {
  static const uint64_t kWords[16] = {[15] = 1};
  const topolet_set far = {kWords, 16};
  (void)instance, (void)request;
  return sink->nodes(sink, far);
}
