/* Answers by a clock that only shows seconds. */
#define PLUGIN_ID "clock"
#define NO_PICK
#include <time.h>

#include "one_fault.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)request;
  return sink->set(sink, 0, TOPOLET_VERDICT_SCORE, (int32_t)(time(NULL) % 100), (topolet_str){NULL, 0});
}
