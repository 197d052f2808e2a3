/* Scores one more than there is. */
#define PLUGIN_ID "too-high"
#define NO_PICK
#include "one_fault.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)request;
  sink->set(sink, 0, TOPOLET_VERDICT_SCORE, TOPOLET_SCORE_MAX + 1, (topolet_str){NULL, 0});
  return TOPOLET_OK;
}
