/* Notes the value of a variable as a tag, which all plugins see. */
#define AT_ADJUST note(request, sink)
#include <topolet/adjust.h>

static void note(const topolet_adjust_request* request, const topolet_adjust_sink* sink) {
  const topolet_kvs env = request->request->workload->env;
  const topolet_str key = TOPOLET_STR("copy");
  if (env.count > 0) sink->tag(sink, key, env.items[0].value);
}
#include "defect.h"
