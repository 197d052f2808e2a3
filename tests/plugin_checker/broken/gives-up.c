/* Never has an opinion that counts. */
#define PLUGIN_ID "gives-up"
#define NO_PICK
#include "one_fault.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)request, (void)sink;
  return TOPOLET_FAILED;
}
