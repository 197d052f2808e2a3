/* Answers by how often it was asked. */
#define PLUGIN_ID "dice"
#define NO_PICK
#include "one_fault.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  static int32_t asked;
  (void)instance, (void)request;
  asked = (asked + 1) % 100;
  return sink->set(sink, 0, TOPOLET_VERDICT_SCORE, asked, (topolet_str){NULL, 0});
}
