/* Trusts that no machine has more than 16 nodes. */
#define PLUGIN_ID "few-nodes"
#define NO_PICK
#include "one_fault.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)sink;
  if (request->topology->node_count > 16) __builtin_trap();
  return TOPOLET_OK;
}
