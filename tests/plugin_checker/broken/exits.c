/* Ends the process. */
#define PLUGIN_ID "exits"
#define NO_SCORE
#include <unistd.h>

#include "one_fault.h"

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  (void)instance, (void)request, (void)sink;
  _exit(3);
  return TOPOLET_OK;
}
