/* Never comes back. */
#define PLUGIN_ID "hangs"
#define NO_SCORE
#include <unistd.h>

#include "one_fault.h"

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  (void)instance, (void)request, (void)sink;
  for (;;) pause();
  return TOPOLET_OK;
}
