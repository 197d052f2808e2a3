/* Narrows to a CPU beside those it was offered, too. */
#define PLUGIN_ID "widens"
#define NO_SCORE
#include "one_fault.h"

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  uint64_t words[1024] = {0};
  const topolet_set wider = {words, request->usable.count + 1};
  (void)instance;
  memcpy(words, request->usable.words, request->usable.count * sizeof(words[0]));
  words[request->usable.count] = 1;
  return sink->narrow(sink, wider);
}
