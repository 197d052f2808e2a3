/* Steps through the candidates by the size of its own struct. */
#define PLUGIN_ID "sizeof-step"
#define NO_PICK
#include "one_fault.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  int32_t set = TOPOLET_OK;
  (void)instance;
  for (uint32_t i = 0; i < request->candidate_count && set == TOPOLET_OK; ++i) {
    const int32_t kind = request->candidates[i].kind;
    set = sink->set(sink, i, TOPOLET_VERDICT_SCORE, kind == TOPOLET_DOMAIN_NODE ? 10 : 0, (topolet_str){NULL, 0});
  }
  return set;
}
