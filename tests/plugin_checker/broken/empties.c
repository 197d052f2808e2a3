/* Narrows to nothing. */
#define PLUGIN_ID "empties"
#define NO_SCORE
#include "one_fault.h"

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  const topolet_set nothing = {NULL, 0};
  (void)instance, (void)request;
  return sink->narrow(sink, nothing);
}
